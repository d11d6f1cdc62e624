package machine

import "slices"

// FrameClass is a set of classes of frames: what a frame asks of the node that receives it, and what it carries. The
// limits on peers go by it.
type FrameClass uint16

const (
	ClassBundle   FrameClass = 1 << iota // mutations, which an author signed
	ClassVote                            // a ballot, or what carries one: a view needs it
	ClassOffer                           // what the sender holds; it is repeated
	ClassCast                            // ballots on motions
	ClassRead                            // asks an anchor for its pledge, for a linearizable read
	ClassPledge                          // the answer to ClassRead
	ClassQuestion                        // asks for blocks, bundles or ballots
	ClassContent                         // has blocks, or may have ballots
	ClassCatchUp                         // the question for final blocks
	ClassBlocks                          // the content that answers it
)

// frameKind is what one tag stands for.
type frameKind struct {
	name  string
	class FrameClass
	// Checking and answering such a frame takes about as long as to verify fixed signatures, and another one for each
	// part of bytes. bytes 0: for none.
	fixed, bytes int
}

// kinds has what every tag stands for.
var kinds = [256]frameKind{
	TagBundle:   {"bundle", ClassBundle, 1, 0},
	TagProposal: {"proposal", ClassVote, 2, 0}, // its certificates are verified until one is bad
	TagBallot:   {"ballot", ClassVote, 1, 0},
	TagAnnounce: {"announcement", ClassVote, 1, 128},
	TagOffer:    {"offer", ClassOffer, 1, 128},
	TagCast:     {"cast", ClassCast, 1, 256},
	TagAsk:      {"ask", ClassRead, 0, 0},
	TagAnswer:   {"answer", ClassPledge, 1, 128},
	TagWant:     {"want", ClassQuestion, 1, 512}, // 16 names
	TagBlock:    {"block", ClassContent, 1, 4096},
	TagCatchUp:  {"catchup", ClassQuestion | ClassCatchUp, 5, 0}, // besides what is read for the answer
	TagBlocks:   {"blocks", ClassContent | ClassBlocks, 0, 0},
	TagMeet:     {"meeting", ClassQuestion | ClassContent, 10, 256}, // some hundred ballots may be read for the answer
}

func kindOf(f []byte) *frameKind {
	if len(f) == 0 {
		return &kinds[0]
	}
	return &kinds[f[0]]
}

// FrameClassOf returns the classes of what a frame claims to be, none for an empty frame or an unknown tag.
func FrameClassOf(f []byte) FrameClass { return kindOf(f).class }

// Is reports whether a frame is of a class.
func (c FrameClass) Is(class FrameClass) bool { return c&class != 0 }

// FrameWork estimates the work of checking and answering a frame, in signatures verified.
func FrameWork(f []byte) int {
	k := kindOf(f)
	if k.bytes == 0 {
		return k.fixed
	}
	return k.fixed + len(f)/k.bytes
}

// FrameKind returns in a word what a frame claims to be, "" for an empty frame or an unknown tag.
func FrameKind(f []byte) string { return kindOf(f).name }

// FrameKinds returns the kinds of frames, sorted by name.
func FrameKinds() (all []string) {
	for _, k := range kinds {
		if k.name != "" {
			all = append(all, k.name)
		}
	}
	slices.Sort(all)
	return all
}
