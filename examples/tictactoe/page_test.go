package main

import (
	"bufio"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be the program.
func TestMain(m *testing.M) {
	if os.Getenv("TICTACTOE_IS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The first line is a link to the live page. It opens the page once, and leaves a cookie that opens it again.
func TestProgram_Link(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0], "-dir", t.TempDir())
	program.Env = append(os.Environ(), "TICTACTOE_IS_PROGRAM=1")
	program.Stderr = os.Stderr
	output, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	defer func() {
		require.NoError(t, program.Process.Kill())
		_ = program.Wait() // it was killed
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	link, ok := strings.CutPrefix(strings.TrimSpace(line), "live page: ")
	require.True(t, ok, line)
	page, _, ok := strings.Cut(link, "?token=")
	require.True(t, ok, link)
	require.True(t, strings.HasPrefix(page, "http://127.0.0.1:"), link)

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	person, stranger := &http.Client{Jar: jar}, &http.Client{}
	require.Equal(t, http.StatusUnauthorized, status(t, stranger, page))
	require.Equal(t, http.StatusOK, status(t, person, link))
	require.Equal(t, http.StatusOK, status(t, person, page), "with the cookie alone")
	require.Equal(t, http.StatusUnauthorized, status(t, stranger, link), "the token was used")
}

func status(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	response, err := c.Get(url)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
