package daemon

import (
	"testing"

	"github.com/aweigh/aweigh/internal/testparallel"
)

func TestMain(m *testing.M) {
	testparallel.Waiting()
	m.Run()
}
