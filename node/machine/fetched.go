package machine

import "github.com/aweigh/aweigh/internal/refusal"

// ErrSnapshot is wrapped by errors about a snapshot, or about handovers, of a peer that do not verify.
var ErrSnapshot = refusal.New(refusal.Invalid, "node: bad snapshot")

// HandoversAtOnce bounds the handovers in one answer.
const HandoversAtOnce = 256
