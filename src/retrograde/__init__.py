"""Retrograde: exact derivatives of the NumPy code you already have."""

from retrograde import rules as _rules  # noqa: F401  fills the table
from retrograde import trace as _trace  # noqa: F401  gives the traced value its operators and protocols
from retrograde.batch.vmap import vmap
from retrograde.compiler.compiled import compile
from retrograde.errors import (
    AlreadyUsedError,
    BatchError,
    CompilationError,
    ConversionError,
    DroppedGradientWarning,
    EndedError,
    FrozenBufferError,
    HashError,
    InputError,
    LanguageError,
    LossError,
    MissingAttributeError,
    MissingExtraError,
    MissingRuleError,
    MutationError,
    NotAnArrayError,
    OrderError,
    PickleError,
    PullbackError,
    RetrogradeError,
    RetrogradeWarning,
    ScalarError,
    SeedError,
    SparsityError,
    UnsupportedArgumentError,
)
from retrograde.forward.jvp import jvp, pushforward
from retrograde.reverse.back import back
from retrograde.reverse.checkpoint import checkpointed
from retrograde.reverse.gradient import grad, gradient, value_and_grad, withgradient
from retrograde.reverse.params import Grads, Params, istracked, param
from retrograde.reverse.pullback import pullback
from retrograde.taylor.taylor import taylor
from retrograde.tools.buffer import Buffer
from retrograde.tools.dropping import dropgrad, ignore
from retrograde.tools.forwarddiff import forwarddiff
from retrograde.tools.hooks import hook, showgrad
from retrograde.tools.jacobian import diaghessian, hessian, jacobian, withjacobian
from retrograde.tools.primitive import primitive
from retrograde.tools.products import hvp, linear_operator, linearize, vhp
from retrograde.tools.sparse import sparse_hessian, sparse_jacobian
from retrograde.trace.handle import data
from retrograde.trace.interception import options

__version__ = "0.1.0"

__all__ = [
    "AlreadyUsedError",
    "BatchError",
    "Buffer",
    "CompilationError",
    "ConversionError",
    "DroppedGradientWarning",
    "EndedError",
    "FrozenBufferError",
    "Grads",
    "HashError",
    "InputError",
    "LanguageError",
    "LossError",
    "MissingAttributeError",
    "MissingExtraError",
    "MissingRuleError",
    "MutationError",
    "NotAnArrayError",
    "OrderError",
    "Params",
    "PickleError",
    "PullbackError",
    "RetrogradeError",
    "RetrogradeWarning",
    "ScalarError",
    "SeedError",
    "SparsityError",
    "UnsupportedArgumentError",
    "back",
    "checkpointed",
    "compile",
    "data",
    "diaghessian",
    "dropgrad",
    "forwarddiff",
    "grad",
    "gradient",
    "hessian",
    "hook",
    "hvp",
    "ignore",
    "istracked",
    "jacobian",
    "jvp",
    "linear_operator",
    "linearize",
    "options",
    "param",
    "primitive",
    "pullback",
    "pushforward",
    "showgrad",
    "sparse_hessian",
    "sparse_jacobian",
    "taylor",
    "value_and_grad",
    "vhp",
    "vmap",
    "withgradient",
    "withjacobian",
]
