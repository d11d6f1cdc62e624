package machine

import "errors"

// ErrSnapshot is wrapped by errors about a snapshot, or about handovers, that do not verify.
var ErrSnapshot = errors.New("node: bad snapshot")

// HandoversAtOnce bounds the handovers in one answer.
const HandoversAtOnce = 256
