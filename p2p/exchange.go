package p2p

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/canon"
)

const (
	maxAnswered     = 64 // records in one answer
	maxWanted       = 128
	maxPeersRequest = 16 << 10
	maxPeersAnswer  = maxAnswered*(maxRecord+128) + 64
	askMin          = 500 * time.Millisecond // pause after an answer that brought news
	askMax          = 30 * time.Second       // pause when nothing is new any more
)

// peersRequest asks a peer for the records of peers it knows.
type peersRequest struct {
	_      struct{} `cbor:",toarray"`
	Wanted [][]byte // peer IDs that matter most, at most maxWanted
}

// peersAnswer holds the records of peers, and a datastore's value the same.
type peersAnswer struct {
	_       struct{} `cbor:",toarray"`
	Records []peerRecord
}

// peerRecord is a peer's signed record. The ID, which is inside as well, lets
// the reader skip records that it does not need to verify.
type peerRecord struct {
	_      struct{} `cbor:",toarray"`
	ID     []byte
	Sealed []byte
}

// errNotAdmitted answers a peer that Config.Admit does not admit.
var errNotAdmitted = errors.New("p2p: this peer is not admitted")

// answerPeers serves a peersRequest.
func (h *Host) answerPeers(_ context.Context, from peer.ID, req []byte) ([]byte, error) {
	if !h.cfg.Admit(from) {
		return nil, errNotAdmitted
	}
	var ask peersRequest
	if err := canon.Decode(req, &ask); err != nil {
		return nil, err
	}
	var wanted []peer.ID
	for _, b := range ask.Wanted[:min(len(ask.Wanted), maxWanted)] {
		wanted = append(wanted, peer.ID(b))
	}
	return canon.Encode(peersAnswer{Records: h.book.pick(wanted, maxAnswered)}), nil
}

// exchange asks connected peers, one at a time, for the peers that they know,
// for as long as peers or members are missing.
func (h *Host) exchange() {
	pause := askMin
	for {
		missing := h.dialer.lonely(maxWanted)
		if remotes := h.peers.all(); len(remotes) > 0 && (len(remotes) < h.cfg.Target || len(missing) > 0) {
			if h.askPeers(remotes[rand.N(len(remotes))].id, missing) > 0 {
				pause = askMin
			}
		}
		h.book.save()
		select {
		case <-time.After(pause/2 + rand.N(pause)):
			pause = min(2*pause, askMax)
		case <-h.book.news:
			pause = askMin
		case <-h.ctx.Done():
			return
		}
	}
}

// askPeers asks one peer, makes candidates of the peers it names, and returns
// how many of them were news.
func (h *Host) askPeers(to peer.ID, missing []peer.ID) (news int) {
	ask := peersRequest{Wanted: make([][]byte, 0, len(missing))}
	for _, id := range missing {
		ask.Wanted = append(ask.Wanted, []byte(id))
	}
	data, err := h.ask(h.ctx, h.peersID, to, canon.Encode(ask), maxPeersAnswer)
	if err != nil {
		return 0
	}
	var answer peersAnswer
	if canon.Decode(data, &answer) != nil || len(answer.Records) > maxAnswered {
		return 0
	}
	for _, r := range answer.Records {
		id := peer.ID(r.ID)
		if len(r.Sealed) > maxRecord || id == h.ID() || h.dialer.connected(id) || h.dialer.hasHeard(r) {
			continue
		}
		e, err := r.open()
		if err != nil {
			continue
		}
		if h.dialer.isMember(id) {
			h.book.put(id, e)
		}
		if h.dialer.heard(id, e) {
			news++
		}
	}
	return news
}
