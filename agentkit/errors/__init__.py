"""The errors of agentkit, one tree. Each class is also the nearest standard one.

```
AgentkitError
├── ConfigurationError (ValueError)         found while an agent is built
│   ├── CannotJoin
│   ├── DuplicateTool
│   ├── DuplicateMiddleware
│   ├── InvalidContract
│   ├── InvalidHook
│   ├── NoGraph (TypeError)
│   ├── PlacementConflict
│   ├── ReservedField
│   ├── UnknownRule
│   ├── UnknownStateField
│   └── UnknownToolName
├── HookError (RuntimeError)                a middleware broke the protocol while a run went on
│   ├── UndeclaredJump
│   ├── MissingHookForm (NotImplementedError, TypeError)
│   ├── ForgottenPause
│   └── UnusedDecision
├── InvalidArguments (ToolException)        told to the model
├── MissingStructuredOutput (StructuredOutputError)
├── MissingToolForm (NotImplementedError)
├── ToolTimeout (TimeoutError)              told to the model
├── TruncatedReply (ConnectionError)
├── InvalidDecision (ValueError)            an answer to a question for approval that cannot be taken
│   ├── UnknownDecision
│   ├── IncompleteDecision
│   ├── WrongCall
│   ├── InvalidEdit
│   └── NotEntitled
├── LedgerError (RuntimeError)              the record of effects
│   ├── LedgerUnavailable
│   ├── EffectSuperseded
│   └── NotJournaled
├── UnrecordableResult (TypeError)
├── UnknownEffect (LookupError)
├── InvalidSettlement (ValueError)
├── MissingCheckpointer (RuntimeError)
├── MissingThread (ValueError)
├── UnreadableReply (ValueError)
├── GateTripped (RuntimeError)
├── NestedPause (RuntimeError)
├── MissingDependency (ImportError)         an extra that is not installed
├── UnreadableTrace (ValueError)
├── InvalidTurn (ValueError)                a message or a decision that was delivered
├── UnknownInterrupt (LookupError)
├── InvalidStoreUrl (ValueError)
├── StoreUnreachable (ConnectionError)      between an agent and where its threads are kept
├── StoreReadOnly (PermissionError)
├── StoreFull (OSError)
├── UnstorableValue (TypeError)
├── UnreadableValue (ValueError)
├── ThreadExists (ValueError)
├── UnknownCheckpoint (LookupError)
├── ThreadBusy (RuntimeError)
└── LeaseLost (RuntimeError)
```
"""

from agentkit.errors.building import (
    AgentkitError,
    CannotJoin,
    ConfigurationError,
    ConfigurationWarning,
    DuplicateMiddleware,
    DuplicateTool,
    InvalidContract,
    InvalidHook,
    NoGraph,
    PlacementConflict,
    ReservedField,
    UnknownRule,
    UnknownStateField,
    UnknownToolName,
)
from agentkit.errors.decisions import (
    IncompleteDecision,
    InvalidDecision,
    InvalidEdit,
    NotEntitled,
    UnknownDecision,
    WrongCall,
)
from agentkit.errors.effects import (
    EffectSuperseded,
    InvalidSettlement,
    LedgerError,
    LedgerUnavailable,
    NotJournaled,
    UnknownEffect,
    UnrecordableResult,
)
from agentkit.errors.observing import MissingDependency, UnreadableTrace
from agentkit.errors.running import (
    ForgottenPause,
    GateTripped,
    HookError,
    InvalidArguments,
    MissingCheckpointer,
    MissingHookForm,
    MissingStructuredOutput,
    MissingThread,
    MissingToolForm,
    NestedPause,
    ToolTimeout,
    TruncatedReply,
    UndeclaredJump,
    UnreadableReply,
    UnusedDecision,
)
from agentkit.errors.storing import (
    InvalidStoreUrl,
    LeaseLost,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    ThreadBusy,
    ThreadExists,
    UnknownCheckpoint,
    UnreadableValue,
    UnstorableValue,
)
from agentkit.errors.turning import InvalidTurn, UnknownInterrupt

__all__ = [
    "AgentkitError",
    "CannotJoin",
    "ConfigurationError",
    "ConfigurationWarning",
    "DuplicateMiddleware",
    "DuplicateTool",
    "EffectSuperseded",
    "ForgottenPause",
    "GateTripped",
    "HookError",
    "IncompleteDecision",
    "InvalidArguments",
    "InvalidContract",
    "InvalidDecision",
    "InvalidEdit",
    "InvalidHook",
    "InvalidSettlement",
    "InvalidStoreUrl",
    "InvalidTurn",
    "LeaseLost",
    "LedgerError",
    "LedgerUnavailable",
    "MissingCheckpointer",
    "MissingDependency",
    "MissingHookForm",
    "MissingStructuredOutput",
    "MissingThread",
    "MissingToolForm",
    "NestedPause",
    "NoGraph",
    "NotEntitled",
    "NotJournaled",
    "PlacementConflict",
    "ReservedField",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnreachable",
    "ThreadBusy",
    "ThreadExists",
    "ToolTimeout",
    "TruncatedReply",
    "UndeclaredJump",
    "UnknownCheckpoint",
    "UnknownDecision",
    "UnknownEffect",
    "UnknownInterrupt",
    "UnknownRule",
    "UnknownStateField",
    "UnknownToolName",
    "UnreadableReply",
    "UnreadableTrace",
    "UnreadableValue",
    "UnrecordableResult",
    "UnstorableValue",
    "UnusedDecision",
    "WrongCall",
]
