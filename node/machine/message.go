package machine

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Message is a decoded and verified frame.
type Message interface{ message() }

// A frame is one tag and the canonical encoding of the content.
const (
	TagBundle   = 'b'
	TagProposal = 'p'
	TagBallot   = 'v'
	TagOffer    = 'o'
	TagWant     = 'w'
	TagBlock    = 'k'
	TagAsk      = 'r'
	TagAnswer   = 'a'
	TagCatchUp  = 's'
	TagBlocks   = 'y'
	TagAnnounce = 'n'
	TagCast     = 'c'
	TagMeet     = 'm'
)

// Proposal announces a block by its header and the names of its bundles. Other anchors hold those bundles already, or
// ask for them (Want).
type Proposal struct {
	_          struct{} `cbor:",toarray"`
	Header     scope.Header
	Bundles    []aweigh.Hash
	Evidence   scope.Evidence
	ParentView aweigh.View
	Proof      []quorum.Certificate // the parent's notarization, nullifications between (P12)
	Signature  []byte               // of the leader: its ballot to notarize the block
}

// Offer is a quorum.Offer with what else a peer needs to see whether it or the sender is behind.
type Offer struct {
	_            struct{} `cbor:",toarray"`
	Domain       votes.Domain
	View, Final  aweigh.View
	Height       aweigh.Height // final
	Votes        []OfferedVote
	Certificates []quorum.Certificate
	Answer       bool // it answers an offer, and is not answered itself
	Silent       bool // the sender signs nothing: it has no anchor key here, or lost its record (P9)
}

type OfferedVote struct {
	_         struct{} `cbor:",toarray"`
	Subject   quorum.Subject
	Signature quorum.Signature
}

// Want asks for contents by name.
type Want struct {
	_       struct{} `cbor:",toarray"`
	Blocks  []aweigh.Hash
	Bundles []aweigh.Hash
}

// Ask asks an anchor for its pledge (P23).
type Ask struct {
	_     struct{} `cbor:",toarray"`
	Round uint64
}

// Answer is an anchor's answer to Ask: the header of the highest block for which it signed finalize, with a
// certificate for that block. See Machine.pledge for the mode in which one round decides.
type Answer struct {
	_           struct{} `cbor:",toarray"`
	Round       uint64
	Header      scope.Header
	Certificate quorum.Certificate // zero if Header is the genesis'
	Epoch       aweigh.Epoch       // of the anchor
	Unfinalized aweigh.View        // of that epoch, if one round decides: the highest view that may have a block, or 0
	Now         aweigh.Instant     // by the anchor's clock; see Reply.Now
}

// CatchUp asks for final blocks from a height on.
type CatchUp struct {
	_    struct{} `cbor:",toarray"`
	From aweigh.Height
}

// Blocks carries final blocks in order, and the proof that the last one is final.
type Blocks struct {
	_            struct{} `cbor:",toarray"`
	Blocks       [][]byte
	Certificates []quorum.Certificate // of each block; zero if it has none of its own
	Finality     scope.Finality       // of the last block
	Height       aweigh.Height        // the sender's final height
}

// Cast passes on ballots on motions.
type Cast struct {
	_       struct{} `cbor:",toarray"`
	Ballots [][]byte // encodings of votes.MotionBallot
}

// ReconcileMsg is a message of a session that reconciles two ballot boxes (package votes/reconcile).
type ReconcileMsg struct {
	_       struct{} `cbor:",toarray"`
	Part    ReconcileStep
	Message []byte
}

// ReconcileStep is the sender's part in a session.
type ReconcileStep uint8

const (
	Begins  ReconcileStep = 1 // the first message of the peer that begins the session
	GoesOn  ReconcileStep = 2 // a later message of that peer
	Answers ReconcileStep = 3
)

// Announce makes a final block known to all peers.
type Announce struct {
	_           struct{} `cbor:",toarray"`
	Header      scope.Header
	Certificate quorum.Certificate
}

// The checked forms.
type (
	BundleIn   struct{ Bundle *scope.CheckedBundle }
	ProposalIn struct {
		Proposal
		ballot votes.Checked
	}
	ballotIn struct {
		ballot votes.Checked
		input  quorum.Input // its vote, made once for all machines that share the message
	}
	offerIn struct {
		Offer
		votes []ballotIn
		early earlyFrame // the whole frame, if it is of the next epoch
	}
	castIn struct {
		checked []votes.CheckedMotionBallot
		others  []votes.MotionBallot // of voters that have no vote on motions that open now
	}
	blockIn    struct{ block *scope.Block }
	AheadIn    struct{} // news of a later epoch, which cannot be verified
	earlyFrame []byte   // of the next epoch: it cannot be verified yet
	blocksIn   struct {
		blocks   []*scope.Block
		certs    []quorum.Certificate
		finality scope.Finality
		height   aweigh.Height
	}
)

func (BundleIn) message()     {}
func (earlyFrame) message()   {}
func (AheadIn) message()      {}
func (ProposalIn) message()   {}
func (ballotIn) message()     {}
func (castIn) message()       {}
func (ReconcileMsg) message() {}
func (offerIn) message()      {}
func (blockIn) message()      {}
func (blocksIn) message()     {}
func (Want) message()         {}
func (Ask) message()          {}
func (Answer) message()       {}
func (CatchUp) message()      {}
func (Announce) message()     {}
func (Cast) message()         {}

// MaxNames bounds the names in one Want.
const MaxNames = 1024

// maxOffered bounds the votes, and the certificates, in one offer. The bound is multiplied by the number of anchors
// that the roster may have.
const maxOffered = 32

// ErrFrame is wrapped by errors about frames that no honest node sends.
var ErrFrame = refusal.New(refusal.Malformed, "node: bad frame")

func Tagged(tag byte, content any) []byte { return append([]byte{tag}, canon.Encode(content)...) }

func RawFrame(tag byte, raw []byte) []byte {
	f := make([]byte, 0, len(raw)+1)
	return append(append(f, tag), raw...)
}

// Checker turns frames into Messages: it decodes them, and verifies all signatures that must be verified before a
// Machine handles them. It is immutable and safe for concurrent use, so that checks run outside the Machine.
type Checker struct {
	Anchors  map[Peer]aweigh.AnchorID // frames that only anchors may send are refused from other peers
	Keyring  *votes.Keyring
	Electors votes.KeySet // the voters on motions that open now
	Limits   scope.Limits
	Verify   votes.Verifier
	Proves   func(from Peer, author votes.PublicKey, signatures int) error // see scope.Proving
}

// Check decodes and verifies a frame from a peer. It does not verify the certificates in proposals, offers and
// answers: the Machine holds most of them already and verifies only the others.
func (c *Checker) Check(from Peer, f []byte) (Message, error) {
	if len(f) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrFrame)
	}
	body := f[1:]
	switch f[0] {
	case TagBundle:
		b, err := scope.CheckBundleIf(body, c.Limits, c.Verify, func(author votes.PublicKey, signatures int) error {
			return c.Proves(from, author, signatures)
		})
		return BundleIn{b}, err
	case TagBallot:
		b, err := votes.DecodeBallot(body)
		if err != nil {
			return nil, err
		}
		if c.early(from, b.Domain, f) {
			return earlyFrame(f), nil
		}
		return c.ballot(b)
	case TagProposal:
		return c.proposal(from, f)
	case TagOffer:
		return c.offer(from, f)
	case TagBlock:
		if _, ok := c.Anchors[from]; !ok {
			return nil, fmt.Errorf("%w: a block from a peer that is no anchor", ErrFrame)
		}
		b, err := scope.DecodeBlock(body, c.Limits, c.Verify)
		return blockIn{b}, err
	case TagBlocks:
		return c.blocks(body)
	case TagWant:
		m, err := decode[Want](body)
		if err == nil && len(m.Blocks)+len(m.Bundles) > MaxNames {
			err = fmt.Errorf("%w: %w: %d names, at most %d are taken", ErrFrame, errOversized, len(m.Blocks)+len(m.Bundles), MaxNames)
		}
		return m, err
	case TagCast:
		return c.casts(body)
	case TagMeet:
		m, err := decode[ReconcileMsg](body)
		if err == nil && (m.Part < Begins || m.Part > Answers) {
			err = fmt.Errorf("%w: a meeting's part %d", ErrFrame, m.Part)
		}
		if err == nil && len(m.Message) > maxMeeting {
			err = fmt.Errorf("%w: %w: a meeting's message of %d bytes", ErrFrame, errOversized, len(m.Message))
		}
		return m, err
	case TagAsk:
		return decode[Ask](body)
	case TagAnswer:
		return decode[Answer](body)
	case TagCatchUp:
		return decode[CatchUp](body)
	case TagAnnounce:
		a, err := decode[Announce](body)
		if err == nil {
			err = a.Check(c.Keyring)
		}
		if errors.Is(err, votes.ErrAhead) {
			return AheadIn{}, nil
		}
		return a, err
	}
	return nil, fmt.Errorf("%w: unknown tag %q", ErrFrame, f[0])
}

func decode[T Message](body []byte) (T, error) {
	var m T
	err := canon.Decode(body, &m)
	return m, err
}

// early reports whether a frame is of the next epoch, from an anchor, and small enough to be kept.
func (c *Checker) early(from Peer, d votes.Domain, f []byte) bool {
	k := c.Keyring.Domain()
	_, anchor := c.Anchors[from]
	return anchor && d.Network == k.Network && d.Scope == k.Scope && d.Epoch == k.Epoch+1 && len(f) <= maxEarly
}

func (c *Checker) ballot(b votes.Ballot) (ballotIn, error) {
	checked, err := c.Keyring.Check(b)
	return ballotIn{checked, checked.Vote()}, err
}

func (c *Checker) proposal(from Peer, f []byte) (Message, error) {
	var m Proposal
	if err := canon.Decode(f[1:], &m); err != nil {
		return nil, err
	}
	h := m.Header
	if c.early(from, h.Domain(), f) {
		return earlyFrame(f), nil
	}
	if len(m.Bundles) > c.Limits.BlockMutations {
		return nil, fmt.Errorf("%w: %w: a proposal of %d bundles", ErrFrame, errOversized, len(m.Bundles))
	}
	ballot, err := c.Keyring.Check(votes.Ballot{
		Format: scope.Format, Domain: h.Domain(), Anchor: h.Proposer, Signature: m.Signature,
		Subject: quorum.Subject{Kind: c.Keyring.Rules().Mode.Vouch(), View: h.View, Block: h.Hash()},
	})
	return ProposalIn{m, ballot}, err
}

func (c *Checker) offer(from Peer, f []byte) (Message, error) {
	in := offerIn{}
	if err := canon.Decode(f[1:], &in.Offer); err != nil {
		return nil, err
	}
	if c.early(from, in.Domain, f) {
		in.early = f
	}
	if d := c.Keyring.Domain(); in.Domain.Network != d.Network {
		return nil, fmt.Errorf("%w: an offer", votes.ErrForeign)
	} else if in.Domain.Scope != d.Scope {
		return nil, fmt.Errorf("%w: an offer", votes.ErrOtherScope)
	} else if in.Domain.Epoch == d.Epoch && in.Domain != d {
		return nil, fmt.Errorf("%w: an offer under another roster or policy", votes.ErrStale)
	} else if in.Domain != d { // only its epoch and heights are of use
		in.Votes, in.Certificates = nil, nil
	}
	if most := maxOffered * c.Limits.Anchors; len(in.Votes) > most || len(in.Certificates) > most {
		return nil, fmt.Errorf("%w: %w: an offer of %d votes and %d certificates", ErrFrame, errOversized, len(in.Votes), len(in.Certificates))
	}
	if _, ok := c.Anchors[from]; !ok {
		in.Votes, in.Certificates = nil, nil // only what the sender lacks is of use
	}
	for _, v := range in.Votes {
		b := votes.Ballot{Format: scope.Format, Domain: in.Domain, Subject: v.Subject,
			Anchor: v.Signature.Anchor, Signature: v.Signature.Bytes}
		checked, err := c.ballot(b)
		if err != nil {
			return nil, err
		}
		in.votes = append(in.votes, checked)
	}
	return in, nil
}

// casts verifies the ballots of voters on motions that open now. It leaves the others to the Machine, which knows the
// voters on motions that opened before.
func (c *Checker) casts(body []byte) (Message, error) {
	m, err := decode[Cast](body)
	if err != nil {
		return nil, err
	}
	if len(m.Ballots) > maxCast || len(body) > maxCastBytes+votes.MaxMotionBallot {
		return nil, fmt.Errorf("%w: %w: %d ballots in %d bytes", ErrFrame, errOversized, len(m.Ballots), len(body))
	}
	var in castIn
	d := c.Keyring.Domain()
	for _, raw := range m.Ballots {
		b, err := votes.DecodeMotionBallot(raw)
		if err == nil {
			err = b.Admissible(d.Network, d.Scope)
		}
		if err != nil {
			return nil, err
		}
		if _, ok := c.Electors.Key(b.Voter); !ok {
			in.others = append(in.others, b)
			continue
		}
		checked, err := votes.CheckMotionBallot(b, d.Network, d.Scope, c.Electors, c.Verify)
		if err != nil {
			return nil, err
		}
		in.checked = append(in.checked, checked)
	}
	return in, nil
}

// maxCast bounds the ballots of one Cast.
const maxCast = 256

func (c *Checker) blocks(body []byte) (Message, error) {
	var m Blocks
	if err := canon.Decode(body, &m); err != nil {
		return nil, err
	}
	if len(m.Blocks) > MaxBlocks || len(m.Blocks) != len(m.Certificates) {
		return nil, fmt.Errorf("%w: %d blocks with %d certificates", ErrFrame, len(m.Blocks), len(m.Certificates))
	}
	in := blocksIn{certs: m.Certificates, finality: m.Finality, height: m.Height}
	for i, raw := range m.Blocks {
		b, err := scope.DecodeBlock(raw, c.Limits, c.Verify)
		if err != nil {
			return nil, err
		}
		if i > 0 && b.Header.Parent != in.blocks[i-1].Hash() {
			return nil, fmt.Errorf("%w: blocks that are no chain", ErrFrame)
		}
		if cert := m.Certificates[i]; !cert.IsZero() && i < len(m.Blocks)-1 {
			f := scope.Finality{Header: b.Header, Certificate: cert}
			if err := f.Check(c.Keyring); err != nil {
				return nil, err
			}
		}
		in.blocks = append(in.blocks, b)
	}
	if n := len(in.blocks); n > 0 {
		if in.blocks[n-1].Header != m.Finality.Header {
			return nil, fmt.Errorf("%w: finality of another block", ErrFrame)
		}
		if err := m.Finality.Check(c.Keyring); err != nil {
			return nil, err
		}
		in.certs[n-1] = quorum.Certificate{} // it is in the finality
	}
	return in, nil
}
