package quorum_test

import (
	"testing"

	"github.com/aweigh/aweigh/internal/testheap"
)

func TestMain(m *testing.M) {
	testheap.Roomy()
	m.Run()
}
