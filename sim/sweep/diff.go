package sweep

import (
	"bufio"
	"fmt"
	"io"
)

// TraceDiff states where two readable traces part.
type TraceDiff struct {
	Equal  bool
	Line   uint64   // the first that differs, from 1; of equal traces, how many there are
	Common []string // the last ones before it
	A, B   []string // that line and the next ones of each; none where a trace has ended
}

// maxTraceLine bounds a line of a trace, in bytes.
const maxTraceLine = 1 << 20

// DiffTraces reads two readable traces until they part, and keeps so many lines
// around that.
func DiffTraces(a, b io.Reader, context int) (TraceDiff, error) {
	as, bs := lines(a), lines(b)
	var d TraceDiff
	var more, moreB bool
	for {
		more, moreB = as.Scan(), bs.Scan()
		if err := ended("first", as, more); err != nil {
			return d, err
		}
		if err := ended("second", bs, moreB); err != nil {
			return d, err
		}
		if !more && !moreB {
			d.Equal, d.Common = true, nil
			return d, nil
		}
		d.Line++
		if more != moreB || as.Text() != bs.Text() {
			break
		}
		if d.Common = append(d.Common, as.Text()); len(d.Common) > max(0, context) {
			d.Common = d.Common[1:]
		}
	}
	var err error
	if d.A, err = following("first", as, more, context); err == nil {
		d.B, err = following("second", bs, moreB, context)
	}
	return d, err
}

func lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxTraceLine)
	return s
}

// ended is why a trace cannot be read on, unless it just ended.
func ended(which string, s *bufio.Scanner, more bool) error {
	if err := s.Err(); !more && err != nil {
		return fmt.Errorf("sim: the %s trace: %w", which, err)
	}
	return nil
}

// following is the line last read, if there is more, and those that follow: n of them,
// and at least that one.
func following(which string, s *bufio.Scanner, more bool, n int) (list []string, err error) {
	for ; more; more = s.Scan() {
		if list = append(list, s.Text()); len(list) >= n {
			return list, nil
		}
	}
	return list, ended(which, s, false)
}
