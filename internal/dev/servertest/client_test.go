package servertest_test

import "testing"

// TestClient runs the test that the example of the package shows.
func TestClient(t *testing.T) { testClient(t) }
