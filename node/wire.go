package node

import (
	"fmt"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/votes"
)

// RawBundle is the encoding of a bundle in a frame of its own.
type RawBundle []byte

// RawBlock is the encoding of a block in a frame of its own.
type RawBlock []byte

// Parse decodes a frame, but verifies nothing: for those who look at traffic,
// or make it up. It gives a RawBundle, votes.Ballot, Proposal, Offer, RawBlock,
// Blocks, Want, Ask, Answer, CatchUp or Announce. Errors are those of Check.
func Parse(f []byte) (any, error) {
	if len(f) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrFrame)
	}
	body := f[1:]
	switch f[0] {
	case tagBundle:
		return RawBundle(body), nil
	case tagBallot:
		return votes.DecodeBallot(body)
	case tagProposal:
		return parse[Proposal](body)
	case tagOffer:
		return parse[Offer](body)
	case tagBlock:
		return RawBlock(body), nil
	case tagBlocks:
		return parse[Blocks](body)
	case tagWant:
		return parse[Want](body)
	case tagAsk:
		return parse[Ask](body)
	case tagAnswer:
		return parse[Answer](body)
	case tagCatchUp:
		return parse[CatchUp](body)
	case tagAnnounce:
		return parse[Announce](body)
	case tagCast:
		return parse[Cast](body)
	case tagMeet:
		return parse[Meeting](body)
	}
	return nil, fmt.Errorf("%w: unknown tag %q", ErrFrame, f[0])
}

func parse[T any](body []byte) (T, error) {
	var v T
	err := canon.Decode(body, &v)
	return v, err
}

// Frame is the frame that Parse takes apart.
func Frame(content any) []byte {
	switch c := content.(type) {
	case RawBundle:
		return rawFrame(tagBundle, c)
	case RawBlock:
		return rawFrame(tagBlock, c)
	case votes.Ballot:
		return rawFrame(tagBallot, c.Encode())
	case Proposal:
		return frame(tagProposal, c)
	case Offer:
		return frame(tagOffer, c)
	case Blocks:
		return frame(tagBlocks, c)
	case Want:
		return frame(tagWant, c)
	case Ask:
		return frame(tagAsk, c)
	case Answer:
		return frame(tagAnswer, c)
	case CatchUp:
		return frame(tagCatchUp, c)
	case Announce:
		return frame(tagAnnounce, c)
	case Cast:
		return frame(tagCast, c)
	case Meeting:
		return frame(tagMeet, c)
	}
	panic(fmt.Sprintf("node: %T is no content of a frame", content))
}
