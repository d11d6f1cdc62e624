package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// reachTime is how long a connection to an announced address may take.
const reachTime = 3 * time.Second

// checkPorts reports whether the node can listen where it is to, or does, and
// whether others reach it, as far as that can be known from here.
func (e *exam) checkPorts() {
	if e.Problem != nil {
		e.skip("ports", "the settings make no sense")
		return
	}
	busy := 0
	bad := false
	all := e.listens()
	for _, address := range []string{e.Settings.API, e.Settings.Etcd, e.Settings.Metrics} {
		if address != "" {
			all = append(all, "tcp "+address)
		}
	}
	for _, text := range all {
		network, address, _ := strings.Cut(text, " ")
		err := bind(network, address)
		_, port, _ := net.SplitHostPort(address)
		switch {
		case err == nil && e.runs() && port != "0":
			bad = true
			e.warn("ports", text+" is free, although the node runs", "it was started with other settings: restart it if these are the right ones")
		case err == nil:
		case errors.Is(err, syscall.EADDRINUSE) && (e.runs() || e.pid != 0):
			busy++
		case errors.Is(err, syscall.EADDRINUSE):
			bad = true
			e.fail("ports", text+" is in use by another program", fmt.Sprintf("find it with: ss -lntup 'sport = :%s'; stop it, or choose another port", port))
		case errors.Is(err, syscall.EACCES):
			bad = true
			e.fail("ports", text+" may not be used by this user", "choose a port above 1023")
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			bad = true
			e.fail("ports", text+" is not an address of this machine", "listen on 0.0.0.0, and announce the address that others dial")
		default:
			bad = true
			e.fail("ports", fmt.Sprintf("%s: %v", text, err), "choose another address")
		}
	}
	switch {
	case bad:
	case busy > 0:
		e.ok("ports", "held by the node")
	default:
		e.ok("ports", "free for the node")
	}
	e.checkReach()
}

// listens are the node's addresses as "network address".
func (e *exam) listens() (all []string) {
	for _, text := range e.Settings.Listen {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			continue
		}
		if network, address, err := manet.DialArgs(a); err == nil {
			all = append(all, network+" "+address)
		}
	}
	return all
}

// bind listens for a moment.
func bind(network, address string) (err error) {
	var port io.Closer
	if strings.HasPrefix(network, "udp") {
		port, err = net.ListenPacket(network, address)
	} else {
		port, err = net.Listen(network, address)
	}
	if err != nil {
		return err
	}
	return port.Close()
}

// checkReach reports whether others reach the node.
func (e *exam) checkReach() {
	if !e.runs() {
		e.skip("reachable", "the node does not run")
		return
	}
	inbound := 0
	for _, p := range e.status.Peers {
		if p.Inbound {
			inbound++
		}
	}
	if inbound > 0 {
		e.ok("reachable", "connections came from "+nodes(inbound))
		return
	}
	var refused []string
	errs := make([]error, len(e.status.Addresses))
	var dialled sync.WaitGroup
	for i, text := range e.status.Addresses {
		dialled.Go(func() { errs[i] = e.dial(text) })
	}
	dialled.Wait()
	for i, text := range e.status.Addresses {
		switch err := errs[i]; {
		case errors.Is(err, errNotTCP):
		case err == nil:
			e.ok("reachable", fmt.Sprintf("%s answers, from here; no other node has connected to this one yet", text))
			return
		default:
			refused = append(refused, text)
		}
	}
	do := "open the port in the firewall or the router, and see that announce names the address that others dial; behind NAT that may look so from inside: try from another machine"
	switch {
	case len(e.Settings.Relays) > 0 && strings.Contains(strings.Join(e.status.Addresses, " "), "/p2p-circuit"):
		e.ok("reachable", "through relays")
	case len(e.Settings.Relays) > 0:
		e.warn("reachable", "no relay has given this node a slot", "see that the relays run with \"relay: true\" and have this node's genesis")
	case len(e.status.Addresses) == 0:
		e.warn("reachable", "the node has no address for other nodes", "set listen, announce or relays")
	default:
		e.warn("reachable", "no peer has connected, and nothing answers at "+strings.Join(refused, ", "), do)
	}
}

// errNotTCP is returned for addresses that cannot be tested by dialling.
var errNotTCP = errors.New("not TCP")

// dial connects to an address that the node announces.
func (e *exam) dial(text string) error {
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		return err
	}
	direct, _ := ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_P2P })
	network, address, err := manet.DialArgs(direct)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return errNotTCP
	}
	ctx, cancel := context.WithTimeout(e.ctx, reachTime)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return c.Close()
}
