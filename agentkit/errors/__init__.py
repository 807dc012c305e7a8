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
│   └── UnknownStateField
├── HookError (RuntimeError)                a middleware broke the protocol while a run went on
│   ├── UndeclaredJump
│   ├── MissingHookForm (NotImplementedError, TypeError)
│   ├── ForgottenPause
│   └── UnusedDecision
├── InvalidArguments (ToolException)        told to the model
├── MissingStructuredOutput (StructuredOutputError)
├── ToolTimeout (TimeoutError)              told to the model
├── TruncatedReply (ConnectionError)
├── InvalidDecision (ValueError)            an answer to a question for approval that cannot be taken
│   ├── UnknownDecision
│   ├── IncompleteDecision
│   ├── WrongCall
│   ├── InvalidEdit
│   └── NotEntitled
├── MissingCheckpointer (RuntimeError)
├── UnreadableReply (ValueError)
├── GateTripped (RuntimeError)
└── NestedPause (RuntimeError)
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
)
from agentkit.errors.decisions import (
    IncompleteDecision,
    InvalidDecision,
    InvalidEdit,
    NotEntitled,
    UnknownDecision,
    WrongCall,
)
from agentkit.errors.running import (
    ForgottenPause,
    GateTripped,
    HookError,
    InvalidArguments,
    MissingCheckpointer,
    MissingHookForm,
    MissingStructuredOutput,
    NestedPause,
    ToolTimeout,
    TruncatedReply,
    UndeclaredJump,
    UnreadableReply,
    UnusedDecision,
)

__all__ = [
    "AgentkitError",
    "CannotJoin",
    "ConfigurationError",
    "ConfigurationWarning",
    "DuplicateMiddleware",
    "DuplicateTool",
    "ForgottenPause",
    "GateTripped",
    "HookError",
    "IncompleteDecision",
    "InvalidArguments",
    "InvalidContract",
    "InvalidDecision",
    "InvalidEdit",
    "InvalidHook",
    "MissingCheckpointer",
    "MissingHookForm",
    "MissingStructuredOutput",
    "NestedPause",
    "NoGraph",
    "NotEntitled",
    "PlacementConflict",
    "ReservedField",
    "ToolTimeout",
    "TruncatedReply",
    "UndeclaredJump",
    "UnknownDecision",
    "UnknownRule",
    "UnknownStateField",
    "UnreadableReply",
    "UnusedDecision",
    "WrongCall",
]
