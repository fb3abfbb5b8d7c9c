"""The numbers behind the cost estimate of `python -m ibtpo plan` (docs/cost-model.md)."""

from __future__ import annotations

from pydantic import Field

from ibtpo.config.strict import Strict

RESPONSE = 12_035 / 12  # tokens: the paper's Table 3, independent sampling with G = 12
SHARES = {  # tokens of a tree of 12 over those of 12 independent responses, from the same table; not stated there: as a random tree [OURS]
    "independent": 1.0,
    "random": 7_579 / 12_035,
    "eptree": 7_784 / 12_035,
    "ibtree": 7_592 / 12_035,
    "fixed-width": 7_579 / 12_035,
    "treepo": 7_579 / 12_035,
}


class Plan(Strict):
    """Model of costs (docs/cost-model.md). It is in no hash and changes nothing but what `plan` prints."""

    parameters: float = Field(0.0003, gt=0, description="billions of parameters of the policy")
    response_tokens: float = Field(RESPONSE, gt=0, description="mean tokens of a response (paper, Table 3)")
    prompt_tokens: float = Field(200.0, ge=0, description="[OURS] mean tokens of a prompt")
    steps: float = Field(12.0, gt=0, description="[OURS] mean step nodes of a response, for the offline IB-Score (D.2 row 29)")
    token_share: dict[str, float] = Field(SHARES, description="tokens of a sampler's tree over those of as many independent responses")
    generation: float = Field(
        20_000.0, gt=0, description="[OURS] tokens per second that a device samples, times billions of parameters; 2,400/s for 8.2B"
    )
    tflops: float = Field(312.0, gt=0, description="peak of a device in 10^12 operations per second (A100, bfloat16)")
    utilisation: float = Field(0.3, gt=0, le=1, description="[OURS] share of the peak that training reaches")
    benchmark_problems: int = Field(200, gt=0, description="[OURS] problems of a data set whose size is not in corpora.sources")
    start_minutes: float = Field(5.0, ge=0, description="[OURS] start of a job that runs a policy")
    light_minutes: float = Field(1.0, ge=0, description="[OURS] whole time of a job that runs none")
