"""Step ends that move: the segmenter of the delimiter-noise study.

IB-TPO (arXiv 2605.28109), Table 5, relocates 10% of the split points to random positions. Moving a point over the whole response is not
prefix-consistent: the prefix of a branch would be cut otherwise than in the response it comes from. The causal version [OURS] (D.2 row 28)
keeps the expected number of steps instead: each true step end is dropped with probability rho, and each other token becomes one with
probability rho * rate, where rate = step ends per token. The coin of a token is a hash of (key, token ids up to and with it). EOS never
ends a step of its own (row 16).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

from ibtpo.tree.segment import Segmenter


class NoisySegmenter(Segmenter):
    """`plain` with noise. key: what the coins depend on beside the ids, such as (seed, uid of the problem).

    Raises ValueError unless 0 <= rho < 1 and 0 <= rate <= 1.
    """

    def __init__(self, plain: Segmenter, rho: float, rate: float, key: Sequence[object]) -> None:
        if not (0 <= rho < 1 and 0 <= rate <= 1):
            raise ValueError(f"delimiter noise {rho} must be in [0, 1) and the rate of step ends {rate} in [0, 1]")
        vars(self).update(vars(plain))  # a tree has its own: nothing here may take as long as the vocabulary is large
        self.rho, self.rate = rho, rate
        self.key = "\0".join(map(str, key)).encode("utf-8")

    def ends(self, ids: Sequence[int], prefix: Sequence[int] = ()) -> list[int]:
        """As Segmenter.ends, with noise."""
        true = set(super().ends(ids, prefix))
        seen = hashlib.blake2b(self.key, digest_size=8)
        seen.update(struct.pack(f"<{len(prefix)}q", *prefix))
        found = []
        for end, token in enumerate(ids, start=1):
            seen.update(struct.pack("<q", token))
            coin = int.from_bytes(seen.copy().digest(), "little") / 2**64
            if coin >= self.rho if end in true else coin < self.rho * self.rate and token != self.eos_id:
                found.append(end)
        return found
