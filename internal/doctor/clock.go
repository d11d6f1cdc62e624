package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/aweigh/aweigh/internal/show"
)

const (
	driftBound = 500 * time.Millisecond // how far ahead a block may be (P13 in docs/protocol.md)
	smallDrift = 100 * time.Millisecond
	lateBlock  = 5 * time.Second // a block that became final just now is not older than this
	ntpTime    = 3 * time.Second
	syncClock  = "keep the clock synchronized, with chrony or systemd-timesyncd; then restart the node, which reads it only at its start"
)

// checkClock compares the clock with whatever is at hand.
func (e *exam) checkClock() {
	now := time.Now()
	if e.genesis != nil && now.Add(driftBound).Before(e.genesis.Time.Time()) {
		e.fail("clock", fmt.Sprintf("it shows %s, and the network was founded %s", now.UTC().Format(time.RFC3339),
			e.genesis.Time.Time().UTC().Format(time.RFC3339)), syncClock)
		return
	}
	if newest, _ := e.newest(); newest.After(now.Add(time.Minute)) {
		e.fail("clock", fmt.Sprintf("the node wrote files %s from now: the clock was set back", newest.Sub(now).Round(time.Second)), syncClock)
		return
	}
	if e.runs() && !e.nodesClock() {
		return
	}
	if e.NTP != "" {
		e.checkNTP()
		return
	}
	if off, ok := e.againstBlocks(); ok && off.Abs() > driftBound {
		do := syncClock
		if off < 0 {
			do = "see by --ntp HOST whether this clock is behind, or the scope's time ahead because most anchors' clocks were: then writes go on, and leases and deadlines wait until the clocks get there; " + syncClock
		}
		e.fail("clock", fmt.Sprintf("it is off by about %s, compared with the newest block", off.Round(10*time.Millisecond)), do)
		return
	}
	switch synced, bound, err := kernelClock(); {
	case err != nil:
		e.skip("clock", err.Error()+"; --ntp HOST compares it with a time server")
	case !synced:
		e.warn("clock", "the system does not know it to be synchronized", syncClock+"; --ntp HOST compares it with a time server")
	case bound > driftBound:
		e.warn("clock", fmt.Sprintf("by the system, it may be off by %s", bound), syncClock)
	default:
		e.ok("clock", fmt.Sprintf("by the system, it is synchronized within %s", bound))
	}
}

// nodesClock reports whether the clock that the running node counts by is right: the node compares it with blocks.
func (e *exam) nodesClock() bool {
	asked, now := time.Now(), e.ask(e.ctx, e.api)
	if now == nil {
		return true // the check of health reports it
	}
	if off := show.ClockOff(now); off != "" {
		e.fail("clock", "the node's is "+off+", compared with those of most other anchors", syncClock)
		return false
	}
	return e.sameClock(time.Unix(0, now.NowNs), asked, time.Now())
}

// sameClock compares the clock that the node counts by, which it read at its start, with that of this machine before
// and after the node was asked: they differ if the machine was suspended since, or its clock was set.
func (e *exam) sameClock(node, asked, answered time.Time) bool {
	side, off := "behind", asked.Sub(node)
	if node.After(asked) {
		side, off = "ahead of", node.Sub(answered)
	}
	if off <= driftBound {
		return true
	}
	e.fail("clock", fmt.Sprintf("the node's is %s this machine's by %s: the machine was suspended, or its clock was set, since the node started",
		side, off.Round(10*time.Millisecond)), "see that this machine's clock is right (NTP), then restart the node, which reads it only at its start")
	return false
}

// againstBlocks is by how much this clock is ahead of block time, or behind it
// if negative, if blocks tell. One from the future shows a clock that is behind;
// one that became final while this looks on shows one that is ahead.
func (e *exam) againstBlocks() (off time.Duration, ok bool) {
	if !e.runs() {
		return 0, false
	}
	first := time.Since(time.Unix(0, e.status.BlockTimeNs))
	if first < -driftBound {
		return first, true
	}
	height := e.status.GetHeader().GetHeight()
	ctx, cancel := context.WithTimeout(e.ctx, time.Second)
	defer cancel()
	<-ctx.Done()
	again := e.ask(e.ctx, e.api)
	if again == nil || again.GetHeader().GetHeight() == height {
		return 0, false
	}
	e.status = again
	off = time.Since(time.Unix(0, again.BlockTimeNs))
	if off > 0 && off < lateBlock { // time to become final, and since
		return 0, true
	}
	return off, true
}

// checkNTP compares the clock with a time server's.
func (e *exam) checkNTP() {
	off, err := askNTP(e.ctx, e.NTP)
	text := fmt.Sprintf("it is off by %s, compared with %s", off.Round(time.Millisecond), e.NTP)
	switch {
	case err != nil:
		e.skip("clock", fmt.Sprintf("%s did not return the time: %v", e.NTP, err))
	case off.Abs() > driftBound:
		e.fail("clock", text, syncClock)
	case off.Abs() > smallDrift:
		e.warn("clock", text, syncClock)
	default:
		e.ok("clock", text)
	}
}

// ntpEpoch is 1900 in seconds before 1970.
const ntpEpoch = 2_208_988_800

// askNTP is by how much this clock is ahead of a server's (RFC 5905, a client
// without memory as in its section 14).
func askNTP(ctx context.Context, server string) (ahead time.Duration, err error) {
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(server, "123")
	}
	ctx, cancel := context.WithTimeout(ctx, ntpTime)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", server)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(ntpTime)); err != nil {
		return 0, err
	}
	ask := make([]byte, 48)
	ask[0] = 4<<3 | 3 // version 4, client
	sent := time.Now()
	binary.BigEndian.PutUint64(ask[40:], ntpStamp(sent))
	if _, err := c.Write(ask); err != nil {
		return 0, err
	}
	answer := make([]byte, 512)
	for {
		n, err := c.Read(answer)
		came := sent.Add(time.Since(sent))
		if err != nil {
			return 0, err
		}
		if n < 48 || answer[0]&7 != 4 || string(answer[24:32]) != string(ask[40:48]) {
			continue // not the answer to this question
		}
		if answer[0]>>6 == 3 || answer[1] == 0 || answer[1] > 15 {
			return 0, errors.New("it is not synchronized itself")
		}
		took, left := ntpTimeOf(answer[32:40], sent), ntpTimeOf(answer[40:48], sent)
		return (sent.Sub(took) + came.Sub(left)) / 2, nil
	}
}

// ntpStamp is a time in NTP's form: seconds since 1900 and their 2^32nd parts.
func ntpStamp(t time.Time) uint64 {
	return uint64(t.Unix()+ntpEpoch)<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second)
}

// ntpTimeOf reads a stamp, in the era next to a time that is about right.
func ntpTimeOf(b []byte, near time.Time) time.Time {
	stamp := binary.BigEndian.Uint64(b)
	seconds := near.Unix() + int64(int32(uint32(stamp>>32)-uint32(near.Unix()+ntpEpoch)))
	return time.Unix(seconds, int64(stamp&0xFFFFFFFF*uint64(time.Second)>>32))
}
