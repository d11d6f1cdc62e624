package machine

import (
	"fmt"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/votes"
)

// RawBundle is the encoding of a bundle, as in a frame of its own.
type RawBundle []byte

// RawBlock is the encoding of a block, as in a frame of its own.
type RawBlock []byte

// Parse decodes a frame but verifies nothing. It is for code that inspects traffic or makes it up. It returns a
// RawBundle, votes.Ballot, Proposal, Offer, RawBlock, Blocks, Want, Ask, Answer, CatchUp, Announce, Cast or
// ReconcileMsg. Errors are those of Check.
func Parse(f []byte) (any, error) {
	if len(f) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrFrame)
	}
	body := f[1:]
	switch f[0] {
	case TagBundle:
		return RawBundle(body), nil
	case TagBallot:
		return votes.DecodeBallot(body)
	case TagProposal:
		return Decode[Proposal](body)
	case TagOffer:
		return Decode[Offer](body)
	case TagBlock:
		return RawBlock(body), nil
	case TagBlocks:
		return Decode[Blocks](body)
	case TagWant:
		return Decode[Want](body)
	case TagAsk:
		return Decode[Ask](body)
	case TagAnswer:
		return Decode[Answer](body)
	case TagCatchUp:
		return Decode[CatchUp](body)
	case TagAnnounce:
		return Decode[Announce](body)
	case TagCast:
		return Decode[Cast](body)
	case TagMeet:
		return Decode[ReconcileMsg](body)
	}
	return nil, fmt.Errorf("%w: unknown tag %q", ErrFrame, f[0])
}

func Decode[T any](body []byte) (T, error) {
	var v T
	err := canon.Decode(body, &v)
	return v, err
}

// Frame returns the frame from which Parse returns content. It panics if content is of another type.
func Frame(content any) []byte {
	switch c := content.(type) {
	case RawBundle:
		return RawFrame(TagBundle, c)
	case RawBlock:
		return RawFrame(TagBlock, c)
	case votes.Ballot:
		return RawFrame(TagBallot, c.Encode())
	case Proposal:
		return Tagged(TagProposal, c)
	case Offer:
		return Tagged(TagOffer, c)
	case Blocks:
		return Tagged(TagBlocks, c)
	case Want:
		return Tagged(TagWant, c)
	case Ask:
		return Tagged(TagAsk, c)
	case Answer:
		return Tagged(TagAnswer, c)
	case CatchUp:
		return Tagged(TagCatchUp, c)
	case Announce:
		return Tagged(TagAnnounce, c)
	case Cast:
		return Tagged(TagCast, c)
	case ReconcileMsg:
		return Tagged(TagMeet, c)
	}
	panic(fmt.Sprintf("node: %T is no content of a frame", content))
}
