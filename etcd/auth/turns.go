package auth

import (
	"context"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"google.golang.org/grpc/status"
)

// Few passwords are looked at together: each takes a processor for some tenths of a second and 32 MiB, and any client
// may ask. Few wait, and few from one address.
const (
	hashesWaiting = 64 // those that are looked at included
	hashesEach    = 4
)

// Passwords is the queue of the passwords that are to be looked at. Hosts take turns, so a password waits for one of
// each other host, however many these send. In a full queue, one of a host with more gives way.
type Passwords struct {
	most int // that are looked at together

	mu   sync.Mutex
	all  []*turn          // in the order of arrival
	last map[string]int64 // round of the last turn of each host in all
	now  int64            // the round of the last turn that began
}

// turn is that of one password. A host's turns are in rounds of their own, from the present one on.
type turn struct {
	host, from string
	round      int64
	begun      bool
	begin      chan error // takes why it has no turn, nil: it has
}

// NewPasswords returns an empty queue.
func NewPasswords() *Passwords {
	return &Passwords{most: min(max(runtime.GOMAXPROCS(0)/4, 1), 4), last: make(map[string]int64)}
}

// inTurn looks at a password when it is its turn.
func (p *Passwords) inTurn(ctx context.Context, address string, do func() error) error {
	t := &turn{begin: make(chan error, 1)}
	t.host, t.from = hostOf(address)
	if !p.enter(t) {
		return ErrTooManyRequests
	}
	defer p.leave(t)
	select {
	case err := <-t.begin:
		if err != nil {
			return err
		}
		return do()
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// hostOf returns what shares turns with an address, and what shares a place in the queue with it: IPv4 by itself, IPv6
// by its /56. All clients of this machine share turns, and each connection has a place of its own, as they may come
// through one door.
func hostOf(address string) (host, from string) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return address, address
	}
	switch addr := at.Addr().Unmap(); {
	case addr.IsLoopback():
		return "loopback", address
	case addr.Is6():
		net, _ := addr.Prefix(56) // never fails
		return net.String(), net.String()
	default:
		return addr.String(), addr.String()
	}
}

// enter puts a turn into the queue, and reports whether there was room.
func (p *Passwords) enter(t *turn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, of := 0, map[string]int{t.host: 1}
	for _, x := range p.all {
		of[x.host]++
		if x.from == t.from {
			from++
		}
	}
	if from >= hashesEach || len(p.all) >= hashesWaiting && !p.displace(of, t.host) {
		return false
	}
	t.round = max(p.now, p.last[t.host]) + 1
	p.all, p.last[t.host] = append(p.all, t), t.round
	p.next()
	return true
}

// displace refuses the newest turn of the host that has most of them, if that is more than another host then has.
func (p *Passwords) displace(of map[string]int, host string) bool {
	most, at := of[host], -1
	for i, x := range p.all {
		if n := of[x.host]; !x.begun && (n > most || at >= 0 && n == most) {
			most, at = n, i
		}
	}
	if at < 0 {
		return false
	}
	p.all[at].begin <- ErrTooManyRequests
	p.drop(p.all[at])
	return true
}

func (p *Passwords) leave(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(t)
	p.next()
}

// drop takes a turn out of the queue, if it is there. The caller holds mu.
func (p *Passwords) drop(t *turn) {
	p.all = slices.DeleteFunc(p.all, func(x *turn) bool { return x == t })
	if !slices.ContainsFunc(p.all, func(x *turn) bool { return x.host == t.host }) {
		delete(p.last, t.host)
	}
}

// next begins turns, while few are looked at. The caller holds mu.
func (p *Passwords) next() {
	for {
		var first *turn
		busy := 0
		for _, x := range p.all {
			if x.begun {
				busy++
			} else if first == nil || x.round < first.round {
				first = x
			}
		}
		if first == nil || busy >= p.most {
			return
		}
		first.begun, p.now = true, max(p.now, first.round)
		first.begin <- nil
	}
}
