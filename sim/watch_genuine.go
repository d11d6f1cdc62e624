package sim

import (
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/forge"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// passes checks the frames of liars that pass a node's checks: all that the checks verify is genuine. The parts
// that are left to the machine, which verifies only what it does not hold, are checked in keeps and tells.
func (x *watch) passes(from, to *Node, f *frame) {
	if to.excused() || x.lost {
		return
	}
	w, e := x.w, to.machine.Epoch()
	var err error
	switch c := f.open().(type) {
	case votes.Ballot:
		if c.Domain == e.Domain() {
			err = w.made.ballot(c)
		}
	case machine.Proposal:
		if c.Header.Domain() == e.Domain() {
			err = w.proposed(c)
		}
	case machine.Offer:
		if _, anchor := to.machine.Checker().Anchors[from.Peer]; anchor && c.Domain == e.Domain() {
			err = w.offered(c.Domain, c.Votes)
		}
	case machine.Announce:
		if c.Header.Domain() == e.Domain() {
			err = w.certifies(w.decider(c.Header, c.Certificate), c.Header, c.Certificate)
		}
	case machine.Blocks:
		err = w.caughtUp(c)
	case machine.RawBundle:
		err = w.made.bundle(c)
	case machine.RawBlock:
		err = w.bundles(c)
	case machine.Cast:
		for _, raw := range c.Ballots {
			b, bad := votes.DecodeMotionBallot(raw)
			if _, may := to.machine.Checker().Electors.Key(b.Voter); may || bad != nil {
				err = errors.Join(err, bad, w.made.motionBallot(raw))
			}
		}
	default:
		return
	}
	w.holds(Genuine, to, err == nil, "takes a %s of %s for genuine: %v", machine.FrameKind(f.raw), from, err)
}

// someDoubled is of how many forgeries one is checked again.
const someDoubled = 8

// doubles checks a forgery again as real nodes do, whose keyrings verify directly. The nodes of a world share what
// was verified before, which must make no difference.
func (x *watch) doubles(from, to *Node, f *frame) {
	if to.excused() || x.lost {
		return
	}
	direct := *to.machine.Checker()
	direct.Keyring, direct.Verify = direct.Keyring.With(nil), votes.Verify
	_, err := direct.Check(from.Peer, f.raw)
	x.w.holds(Genuine, to, (err == nil) == (f.err == nil), "a %s of %s is taken, or not, by what was verified before: %v and %v",
		machine.FrameKind(f.raw), from, f.err, err)
}

// someTold is of how many frames that nodes send the watch looks at one, proposals aside.
const someTold = 4

// tells checks the frames that a node passes on. watch.ballot checks its own ballots.
func (x *watch) tells(n *Node, f *frame) {
	kind := machine.FrameKind(f.raw)
	if n.excused() || x.lost || kind == "ballot" || kind != "proposal" && x.w.events%someTold != 0 {
		return
	}
	w := x.w
	var err error
	switch c := f.open().(type) {
	case machine.Proposal:
		err = errors.Join(w.proposed(c), w.certificates(c.Header.Domain(), c.Proof), w.made.evidence(c.Evidence))
	case machine.Offer:
		err = errors.Join(w.offered(c.Domain, c.Votes), w.certificates(c.Domain, c.Certificates))
	case machine.Answer:
		if kind := c.Certificate.Subject.Kind; kind == quorum.Notarize || kind == quorum.Finalize {
			err = w.certifies(kind, c.Header, c.Certificate)
		}
	case machine.Announce:
		err = w.certifies(w.decider(c.Header, c.Certificate), c.Header, c.Certificate)
	case machine.Blocks:
		err = w.caughtUp(c)
	case machine.RawBundle:
		err = w.made.bundle(c)
	case machine.RawBlock:
		err = w.bundles(c)
	case machine.Cast:
		err = w.motionBallots(c.Ballots)
	case machine.ReconcileMsg:
		all, bad := forge.MeetingBallots(c.Message)
		err = errors.Join(bad, w.motionBallots(all))
	default:
		return
	}
	w.holds(Genuine, n, err == nil, "sends a %s that is forged: %v", kind, err)
}

// keeps holds a node to what its machine holds of open views.
func (x *watch) keeps(n *Node) {
	if n.excused() || n.machine == nil || x.lost {
		return
	}
	o := n.machine.Holdings()
	err := errors.Join(x.w.offered(o.Domain, o.Votes), x.w.certificates(o.Domain, o.Certificates))
	x.w.holds(Genuine, n, err == nil, "holds what is forged: %v", err)
}

// genuine checks the signatures that a final block carries.
func (x *watch) genuine(n *Node, at aweigh.Height) {
	w := x.w
	history := machine.History{Reader: n.Disk, Scope: w.id}
	raw, err := history.Raw(at)
	must.OK(err, "reading a final block")
	b, err := forge.OpenBlock(raw)
	must.OK(err, "decoding a final block")
	for _, raw := range b.Bundles {
		err = errors.Join(err, w.made.bundle(raw))
	}
	err = errors.Join(err, w.made.evidence(b.Evidence))
	for _, a := range b.Evidence.Attended {
		about, bad := history.Block(a.Height)
		if err = errors.Join(err, bad); bad != nil {
			break
		}
		h := about.Header
		for _, s := range a.Signatures {
			err = errors.Join(err, w.made.vote(h.Domain(), quorum.Subject{Kind: w.attends(), View: h.View, Block: h.Hash()}, s))
		}
	}
	w.holds(Genuine, n, err == nil, "what the final block at height %d carries is forged: %v", at, err)
}

// recorded checks a node's recorded proofs that its blocks are final.
func (x *watch) recorded(n *Node) {
	history := machine.History{Reader: n.Disk, Scope: x.w.id}
	for at := n.Height; at > 0 && at+2 > n.Height; at-- {
		f, err := history.Finality(at)
		if errors.Is(err, machine.ErrNoBlock) {
			continue
		}
		if err == nil {
			err = x.w.finality(f)
		}
		x.w.holds(Genuine, n, err == nil, "the finality of height %d is forged: %v", at, err)
	}
}

func (w *World) proposed(p machine.Proposal) error {
	h := p.Header
	return w.made.vote(h.Domain(), quorum.Subject{Kind: w.voteKind(h.Epoch), View: h.View, Block: h.Hash()},
		quorum.Signature{Anchor: h.Proposer, Bytes: p.Signature})
}

func (w *World) offered(d votes.Domain, all []machine.OfferedVote) (err error) {
	for _, v := range all {
		err = errors.Join(err, w.made.vote(d, v.Subject, v.Signature))
	}
	return err
}

func (w *World) certificates(d votes.Domain, all []quorum.Certificate) (err error) {
	for _, c := range all {
		err = errors.Join(err, w.certificate(d, c))
	}
	return err
}

func (w *World) motionBallots(all [][]byte) (err error) {
	for _, raw := range all {
		err = errors.Join(err, w.made.motionBallot(raw))
	}
	return err
}

func (w *World) bundles(block []byte) error {
	b, err := forge.OpenBlock(block)
	for _, raw := range b.Bundles {
		err = errors.Join(err, w.made.bundle(raw))
	}
	return err
}

// caughtUp reports what is wrong with final blocks that one node gives another.
func (w *World) caughtUp(c machine.Blocks) (err error) {
	var last scope.Header
	for i, raw := range c.Blocks {
		b, bad := forge.OpenBlock(raw)
		if err = errors.Join(err, bad, w.bundles(raw)); bad != nil {
			return err
		}
		last = b.Header
		if cert := c.Certificates[i]; !cert.IsZero() && i < len(c.Blocks)-1 { // the last one's stands in the finality
			err = errors.Join(err, w.certifies(w.decider(last, cert), last, cert))
		}
	}
	if len(c.Blocks) == 0 {
		return nil
	}
	if last != c.Finality.Header {
		err = errors.Join(err, errors.New("the finality of another block"))
	}
	return errors.Join(err, w.finality(c.Finality))
}
