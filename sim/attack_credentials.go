package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/forge"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// forging spoils the proofs in every kind of message: it keeps messages that pass by, and sends them changed by the
// operators of package forge. It forges messages of its members' machines, in place of them or besides; messages of
// others, to nodes that have the genuine message and to nodes that do not yet; blocks of its own; and requests, as a
// client.
type forging struct {
	kit    forge.Kit
	heard  map[string][]*frame    // by kind, the newest last
	blocks map[aweigh.Hash][]byte // that were proposed, with content that is forged
	loose  map[aweigh.Hash][]byte // bundles in them
	sent   uint64
}

// rare are the kinds of messages that are sent on request only: forgers send several forgeries of each.
var rare = []string{"answer", "block", "blocks"}

// mostHeard bounds the frames of one kind that a forger keeps.
const mostHeard = 16

// ready is the kit as it is of use to a member now.
func (x *forging) ready(l *liar) *forge.Kit {
	k := &x.kit
	k.Rand, k.Weights, k.Rules, k.Outside = l.rand, l.w.weights, l.w.rules, &l.n.author
	if len(k.Keys) == 0 {
		for _, m := range l.members {
			if m.Face == 0 && m.key != nil {
				k.Keys = append(k.Keys, *m.key)
			}
		}
		x.heard = make(map[string][]*frame)
		x.blocks, x.loose = make(map[aweigh.Hash][]byte), make(map[aweigh.Hash][]byte)
	}
	return k
}

func (x *forging) hear(l *liar, from *Node, f *frame) bool {
	k, c := x.ready(l), f.open()
	if want, ok := c.(machine.Want); ok {
		x.serve(l, from, want)
	}
	kind := machine.FrameKind(f.raw)
	if c == nil || f.forged || len(k.Keys) == 0 || l.rand.IntN(8) > 0 {
		return true
	}
	k.Harvest(forge.Open(c, l.voteKind()))
	all := append(x.heard[kind], f)
	x.heard[kind] = all[max(0, len(all)-mostHeard):]
	if l.may() && l.rand.IntN(4) == 0 { // ahead of the genuine one
		x.spread(l, f)
	}
	return true
}

func (x *forging) bend(l *liar, out []packet) []packet {
	k := x.ready(l)
	if len(k.Keys) == 0 {
		return out
	}
	bad := make(map[*frame]*frame)
	for i := range out {
		f := out[i].frame
		if slices.Contains(rare, machine.FrameKind(f.raw)) && l.may() {
			for range 3 {
				if lie := x.spoil(l, f); lie != nil {
					l.sendFrame(out[i].to, lie)
				}
			}
		}
		if _, seen := bad[f]; !seen {
			bad[f] = nil
			if l.may() && (machine.FrameKind(f.raw) == "proposal" || l.rand.IntN(3) == 0) {
				bad[f] = x.spoil(l, f)
			}
		}
		switch lie := bad[f]; {
		case lie == nil:
		case machine.FrameKind(f.raw) == "proposal" || l.rand.IntN(2) == 0: // two proposals would prove that the member lies
			out[i].frame = lie
		default:
			l.w.send(l.n, out[i].to, lie, out[i].wait)
		}
	}
	return out
}

func (x *forging) tick(l *liar) {
	k := x.ready(l)
	if len(k.Keys) == 0 || !l.may() {
		return
	}
	switch l.rand.IntN(6) {
	case 0:
		x.certify(l)
	case 1:
		x.ask(l)
	default:
		var kinds []string
		for _, kind := range machine.FrameKinds() {
			if len(x.heard[kind]) > 0 {
				kinds = append(kinds, kind)
			}
		}
		if len(kinds) > 0 {
			all := x.heard[kinds[l.rand.IntN(len(kinds))]]
			x.spread(l, all[len(all)-1-l.rand.IntN(1+l.rand.IntN(len(all)))]) // new ones more often
		}
	}
}

// spread sends a forgery of a frame to one node, or to all.
func (x *forging) spread(l *liar, f *frame) {
	lie := x.spoil(l, f)
	if lie == nil {
		return
	}
	to := []*Node{l.someone()}
	if l.rand.IntN(2) == 0 {
		to = l.others()
	}
	for _, n := range to {
		l.sendFrame(n, lie)
	}
}

// spoil is a forgery of a frame, nil if there is nothing to forge. A member's own proposal is signed anew, unless the
// signature is what is forged.
func (x *forging) spoil(l *liar, f *frame) *frame {
	c := f.open()
	if c == nil {
		return nil
	}
	m := forge.Open(c, l.voteKind())
	p, leads := c.(machine.Proposal)
	if leads = leads && p.Header.Proposer == l.n.anchorID(); leads {
		switch l.rand.IntN(5) {
		case 0:
			if lie := x.block(l, p); lie != nil {
				return lie
			}
		case 1:
			if lie := x.attendance(l, p); lie != nil {
				return lie
			}
		case 2:
			m.Only("Evidence")
		case 3:
			m.Sites = slices.DeleteFunc(m.Sites, func(s *forge.Site) bool { return s.Class != forge.Evidence })
		}
	}
	s, op, ok := x.kit.Any(m)
	if !ok {
		return nil
	}
	c = m.Content()
	if leads && s.Path != "Signature" {
		p = c.(machine.Proposal)
		if s.Class != forge.Header {
			p.Header.Evidence = p.Evidence.Hash()
		}
		p.Signature = l.sign(quorum.Subject{Kind: l.voteKind(), View: p.Header.View, Block: p.Header.Hash()}).Signature
		c = p
	}
	l.told("forge", "%s: %s: %s", machine.FrameKind(f.raw), s.Path, op.Name)
	return &frame{raw: machine.Frame(c), forged: true}
}

// block is a member's proposal with a forged bundle in it, which it hands out to those that ask.
func (x *forging) block(l *liar, p machine.Proposal) *frame {
	all := x.heard["bundle"]
	if len(all) == 0 {
		return nil
	}
	m := forge.Open(all[l.rand.IntN(len(all))].open(), l.voteKind())
	if _, _, ok := x.kit.Any(m); !ok {
		return nil
	}
	raw := []byte(m.Content().(machine.RawBundle))
	b, err := scope.CheckBundle(raw, scope.MostLimits(), forge.Trusting)
	if err != nil {
		return nil
	}
	made := scope.NewBlock(p.Header, []*scope.CheckedBundle{b}, p.Evidence)
	p.Header, p.Bundles = made.Header, []aweigh.Hash{b.ID()}
	p = l.propose(p)
	made = scope.NewBlock(p.Header, made.Bundles, p.Evidence)
	x.blocks[made.Hash()], x.loose[b.ID()] = made.Encode(), raw
	l.told("forge", "view %d: a block with a forged bundle", p.Header.View)
	return &frame{raw: machine.Frame(p), forged: true}
}

// attendance is a member's proposal that records a vote to finalize of an anchor that is not known to have
// cast it.
func (x *forging) attendance(l *liar, p machine.Proposal) *frame {
	var some []scope.Attended
	if l.n.disk.planted { // what fails is for the machine
		return nil
	}
	must.OK(l.n.state().Open(func(at aweigh.Height, about quorum.Subject, lacks func(aweigh.AnchorID) bool) {
		for seat := range x.kit.Weights.All() {
			if lacks(seat.Anchor) {
				sig := quorum.Signature{Anchor: seat.Anchor, Bytes: x.kit.Pretend(p.Header.Domain(), about, seat.Anchor)}
				some = append(some, scope.Attended{Height: at, Signatures: []quorum.Signature{sig}})
			}
		}
	}), "reading who voted")
	if len(some) == 0 {
		return nil
	}
	p.Evidence.Attended = []scope.Attended{some[l.rand.IntN(len(some))]}
	p.Header.Evidence = p.Evidence.Hash()
	l.told("forge", "view %d: a block with a vote that was not given", p.Header.View)
	return &frame{raw: machine.Frame(l.propose(p)), forged: true}
}

// serve hands out bundles and blocks of a member that no other node has.
func (x *forging) serve(l *liar, to *Node, want machine.Want) {
	give := func(content any) {
		l.sendFrame(to, &frame{raw: machine.Frame(content), forged: true})
	}
	for _, id := range want.Bundles {
		if raw, ok := x.loose[id]; ok && l.rand.IntN(2) == 0 {
			give(machine.RawBundle(raw))
		}
	}
	for _, id := range want.Blocks {
		if raw, ok := x.blocks[id]; ok {
			give(machine.RawBlock(raw))
		}
	}
}

// certify sends a certificate that was made from nothing, about the view that the member is in. The offer promises
// blocks, so that nodes that lack some ask this member.
func (x *forging) certify(l *liar) {
	k, d := &x.kit, l.domain()
	v := l.view() + aweigh.View(l.rand.IntN(3))
	s := l.giveUp(max(v, 1))
	if b := l.w.watch.proposals[place{d.Epoch, s.View}]; !b.IsZero() && l.rand.IntN(2) == 0 {
		s.Kind, s.Block = []quorum.Kind{quorum.Notarize, quorum.Finalize}[l.rand.IntN(2)], b
	}
	m := forge.Open(machine.Offer{Domain: d, View: v + 1, Height: l.n.Height + aweigh.Height(l.rand.IntN(3)), Certificates: []quorum.Certificate{{Subject: s}}}, l.voteKind())
	ops := forge.OperatorsOf(forge.Certificate)
	for _, site := range m.Sites {
		if op := ops[l.rand.IntN(len(ops))]; site.Class == forge.Certificate && k.Forge(m, site, op) {
			l.told("forge", "an offer with a certificate of %v: %s", s, op.Name)
			lie := &frame{raw: machine.Frame(m.Content()), forged: true}
			for _, to := range l.others() {
				l.sendFrame(to, lie)
			}
			return
		}
	}
}

// ask submits, as a client, bundles that are signed and invalid.
func (x *forging) ask(l *liar) {
	x.sent++
	nonce := binary.BigEndian.AppendUint64(nil, x.sent)
	m := l.w.mutation(scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(l.w.key("forged")), Value: nonce}}}, nonce)
	key, what := l.n.author, ""
	m.Author = key.Public().ID()
	b := scope.Bundle{}
	switch l.rand.IntN(9) {
	case 0:
		m.Scope, what = aweigh.Sum(m.Scope[:]), "for another scope"
	case 1:
		m.ValidUntil, what = l.w.now.Add(-1), "that is over"
	case 2:
		m.ValidUntil, what = l.w.now.Add(1<<50), "that is valid for ever"
	case 3:
		b.Reserve, what = scope.MostLimits().BlockCost, "that reserves more than a block has"
	case 4:
		m.Content = canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(l.w.key("forged")), Value: make([]byte, l.w.Genesis.Policy.Limits.ValueBytes+1)}}})
		what = "of too many bytes"
	case 5:
		key, m.Class, m.Content, what = *l.n.key, scope.Govern, canon.Encode(x.admission(l)), "to admit an anchor that did not consent"
		m.Author = key.Public().ID()
	case 6:
		m.Author, what = l.someone().author.Public().ID(), "of another author"
	case 7:
		m.Grants, what = [][]byte{x.grant(l).Encode()}, "by a grant that its signer did not sign"
	default:
		b.Mutations, what = append(b.Mutations, m.Encode()), "that says all twice"
	}
	b.Author, b.Mutations = key.Public(), append(b.Mutations, m.Encode())
	id := forge.BundleID(b)
	b.Signature = key.Sign(votes.ContextBundle, id[:])
	l.told("forge", "a request %s", what)
	lie := &frame{raw: machine.Frame(machine.RawBundle(canon.Encode(b))), forged: true}
	for _, to := range l.others() {
		l.sendFrame(to, lie)
	}
}

// grant is of the rights of another to the member, which signs it itself.
func (x *forging) grant(l *liar) scope.Grant {
	g, err := scope.SignGrant(l.n.author.Signer(), scope.Grant{
		Scope: l.w.id, To: l.n.author.Public(), Name: "forged", NotAfter: l.w.now.Add(time.Hour),
	})
	must.OK(err, "signing a grant")
	g.By = l.someone().author.Public()
	return g
}

// admission is a decision to admit another's key, to which the member consents itself.
func (x *forging) admission(l *liar) scope.Decision {
	d := scope.Admission(l.w.id, l.n.author, "forged", string(l.n.Peer), l.n.anchorID())
	d.Anchor.Key = l.someone().author.Public()
	d.Subject = d.Anchor.Key.ID()
	d.Consent = l.n.author.Sign(votes.ContextConsent, scope.ConsentBytes(l.w.id, *d.Anchor, d.Sponsor))
	return d
}

// voteKind is how anchors vote for a proposal of the epoch that the member is in.
func (l *liar) voteKind() quorum.Kind { return l.w.voteKind(l.domain().Epoch) }
