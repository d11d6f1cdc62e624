package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// distant reports whether a frame is a ballot that the engine would ignore because its view is far ahead: it need not
// be verified. A ballot that claims to be this anchor's own is verified, as it may show that the anchor's record is
// lost (P9).
func (n *Replica) distant(f []byte) bool {
	if len(f) == 0 || f[0] != machine.TagBallot {
		return false
	}
	b, err := votes.DecodeBallot(f[1:])
	s := n.runner.stand.Load() // of the last step that had something to report
	return err == nil && b.Anchor != s.Self && tooFar(b.Subject.View, s.View)
}

// tooFar reports whether a view is so far ahead of an engine's that the engine ignores its votes.
func tooFar(v, of aweigh.View) bool { return v > of+2*quorum.Ahead }
