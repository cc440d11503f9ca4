package world

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite" // the driver "sqlite", in Go
)

// What a query may take and what its result shows.
const (
	maxTime  = 5 * time.Second // of the clock: a busy machine is slow
	maxRows  = 5
	maxBytes = 200
)

// limits are those of SQLite on the connection, by the numbers of sqlite3_limit: they bound memory, and with no
// database attached a query can neither read nor write files.
var limits = map[int]int{
	0:  10_000, // SQLITE_LIMIT_LENGTH, of a string or row
	1:  2_000,  // SQLITE_LIMIT_SQL_LENGTH
	3:  100,    // SQLITE_LIMIT_EXPR_DEPTH
	4:  20,     // SQLITE_LIMIT_COMPOUND_SELECT
	7:  0,      // SQLITE_LIMIT_ATTACHED
	8:  100,    // SQLITE_LIMIT_LIKE_PATTERN_LENGTH
	11: 0,      // SQLITE_LIMIT_WORKER_THREADS
}

// Store is a small database in memory, for queries that only read. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex // of conn: a query's time begins when it has the connection
	db      *sql.DB
	conn    *sql.Conn
	maxTime time.Duration
}

// Result is what an agent gets to read for a query.
type Result struct {
	// Text has a line for each row with its values, separated by " | ", or the error.
	Text string
	// Ran says that the query was a valid one that ended in time.
	Ran bool
	// Cell is the first value of the first row.
	Cell string
}

// open makes a database.
func open(ctx context.Context, statements []string) (*Store, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx) // another one would have a database of its own
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &Store{db: db, conn: conn, maxTime: maxTime}
	script := "BEGIN;" + strings.Join(statements, ";") + "; COMMIT; PRAGMA query_only = 1"
	if _, err := conn.ExecContext(ctx, script); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for id, value := range limits {
		if _, err := sqlite.Limit(conn, id, value); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close frees the database.
func (s *Store) Close() error { return errors.Join(s.conn.Close(), s.db.Close()) }

// Query runs a query that reads. Whatever is wrong with it is part of the result; an error is one of the program, such
// as the end of ctx.
//
// Rows that come late cannot be interrupted one by one by the driver. So the query first runs as a whole, with its rows
// dropped and its time bounded, and then again for the first rows.
func (s *Store) Query(ctx context.Context, query string) (Result, error) {
	if why := refuse(query); why != "" {
		return Result{Text: "error: " + why}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, s.maxTime)
	defer cancel()
	_, err := s.conn.ExecContext(limited, query)
	var out [][]string
	if err == nil {
		out, err = s.read(limited, query)
	}
	switch {
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case limited.Err() != nil:
		return Result{Text: "error: the query takes too long"}, nil
	case err != nil:
		return Result{Text: cut("error: "+plain(err), maxBytes)}, nil
	}
	return show(out), nil
}

// read returns the first rows, and one more to know whether there are more.
func (s *Store) read(ctx context.Context, query string) (out [][]string, err error) {
	found, err := s.conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for len(out) <= maxRows && found.Next() {
		if err := found.Scan(targets...); err != nil {
			return nil, err
		}
		var row []string
		for _, v := range values {
			row = append(row, value(v))
		}
		out = append(out, row)
	}
	return out, found.Err()
}

// value is one as text.
func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []byte:
		return fmt.Sprintf("x'%x'", v)
	}
	return fmt.Sprint(v)
}

// show writes rows as text.
func show(rows [][]string) Result {
	r := Result{Ran: true, Text: "no rows"}
	if len(rows) == 0 {
		return r
	}
	r.Cell = rows[0][0]
	var lines []string
	for i, row := range rows {
		if i == maxRows {
			lines = append(lines, "...")
			break
		}
		lines = append(lines, cut(strings.Join(row, " | "), maxBytes/min(len(rows), maxRows)))
	}
	r.Text = strings.Join(lines, "\n")
	return r
}

// cut returns at most the first n bytes of valid text.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n-3] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

// plain is an error of SQLite without what the driver adds: "no such column: town".
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "SQL logic error: ")
	if i := strings.LastIndex(text, " ("); i > 0 && strings.HasSuffix(text, ")") {
		text = text[:i]
	}
	return text
}

// refuse says why a text is not one statement that reads, and is empty if it may be.
func refuse(query string) string {
	rest := skip(query)
	first := strings.ToUpper(rest[:wordEnd(rest)])
	if first != "SELECT" && first != "WITH" && first != "VALUES" {
		return "only a SELECT is allowed"
	}
	for rest != "" {
		if strings.HasPrefix(rest, ";") {
			if skip(strings.TrimLeft(rest, "; \t\r\n")) != "" {
				return "only one statement is allowed"
			}
			return ""
		}
		rest = skip(rest[token(rest):])
	}
	return ""
}

// wordEnd is where the letters at the beginning end.
func wordEnd(s string) int {
	i := 0
	for i < len(s) && (s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z') {
		i++
	}
	return i
}

// skip drops spaces and comments at the beginning.
func skip(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n\f")
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s[2:], "*/")
		default:
			return s
		}
	}
}

// token is the length of what is quoted at the beginning, and else 1: what matters is where quoted texts end. A quote
// in a text is written twice, which reads as two texts side by side.
func token(s string) int {
	quote := strings.IndexByte("'\"`[", s[0])
	if quote < 0 {
		return 1
	}
	end := strings.IndexByte(s[1:], "'\"`]"[quote])
	if end < 0 {
		return len(s)
	}
	return end + 2
}
