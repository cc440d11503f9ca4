package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// filled opens a database of the first domain.
func filled(t *testing.T) *Store {
	t.Helper()
	s := newSchema(&domains[0], rand.New(rand.NewPCG(1, 1)))
	statements, _ := s.fill(rand.New(rand.NewPCG(1, 2)))
	store, err := open(t.Context(), statements)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// query runs one that must not be an error of the program.
func (s *Store) query(t *testing.T, query string) Result {
	t.Helper()
	r, err := s.Query(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r
}

func TestQuery_Text(t *testing.T) {
	s := filled(t)
	for query, want := range map[string]string{
		"SELECT 1":                                  "1",
		"select 1.50, NULL, 'x;y' ; ":               "1.5 | NULL | x;y",
		"-- one\n/* two */ SELECT 2;":               "2",
		"VALUES (1), (2)":                           "1\n2",
		"WITH t(x) AS (VALUES (1)) SELECT x FROM t": "1",
		"SELECT 1 WHERE 0":                          "no rows",
		"SELECT x'0aff'":                            "x'0aff'",
		"SELECT 10000000 * 1.5":                     "15000000",
		"SELECT 'it''s; DROP', \"total\" FROM orders WHERE 0": "no rows",
		"SELECT town FROM customers":                          "error: no such column: town",
		"SELECT * FROM buyers":                                "error: no such table: buyers",
		"SELEC 1":                                             "error: only a SELECT is allowed",
		"SELECT COUNT(* FROM orders":                          `error: near "FROM": syntax error`,
		"":                                                    "error: only a SELECT is allowed",
	} {
		if r := s.query(t, query); r.Text != want || r.Ran != !strings.HasPrefix(want, "error") {
			t.Errorf("%s gives %+v, want %s", query, r, want)
		}
	}
}

// Whatever a query returns, little of it is shown.
func TestQuery_Bounds(t *testing.T) {
	s := filled(t)
	for _, query := range []string{
		"SELECT * FROM orders", "SELECT * FROM orders, products", "SELECT printf('%5000d', 1)", "SELECT zeroblob(5000)",
		"SELECT group_concat(name) FROM customers", "SELECT " + strings.Repeat("1, ", 500) + "1",
		"SELECT printf('%s', 'ü'), '" + strings.Repeat("ü", 500) + "' FROM customers",
	} {
		r := s.query(t, query)
		if !r.Ran || len(r.Text) > maxBytes+maxRows+len("...") || strings.Count(r.Text, "\n") > maxRows {
			t.Errorf("%s gives %d bytes: %+v", query, len(r.Text), r)
		}
	}
	if kept, err := s.read(t.Context(), "SELECT * FROM orders"); err != nil || len(kept) != maxRows+1 {
		t.Errorf("%d rows are read, %v", len(kept), err)
	}
	r := s.query(t, "SELECT name FROM products ORDER BY name")
	if !strings.HasSuffix(r.Text, "\n...") || r.Cell != "Ball" {
		t.Errorf("%+v", r)
	}
}

// Queries that write, that reach files or that change the connection are refused, and leave the database as it is.
func TestQuery_ReadsOnly(t *testing.T) {
	s := filled(t)
	folder := t.TempDir()
	t.Chdir(folder)
	before := s.query(t, "SELECT COUNT(*), SUM(total) FROM orders").Text
	for _, query := range []string{
		"DELETE FROM orders", "UPDATE orders SET total = 0", "INSERT INTO orders(total) VALUES (1)", "DROP TABLE orders",
		"CREATE TABLE t(x)", "CREATE TEMP TABLE t(x)", "REPLACE INTO orders(total) VALUES (1)", "VACUUM",
		"VACUUM INTO 'copy.db'", "ATTACH 'other.db' AS other", "PRAGMA query_only = 0", "PRAGMA journal_mode = DELETE",
		"BEGIN", "SAVEPOINT s", "EXPLAIN SELECT 1", "REINDEX", "ANALYZE",
		"SELECT 1; DELETE FROM orders", "SELECT 1; PRAGMA query_only = 0; DELETE FROM orders", ";DELETE FROM orders",
		"SELECT 1;;DELETE FROM orders", "SELECT 1; -- nothing\nDELETE FROM orders", "SELECT ';' ; DELETE FROM orders",
		"SELECT '''' ; DELETE FROM orders", "/* SELECT */ DELETE FROM orders", "SELECT 1 /* ; */ ; DELETE FROM orders",
		"SELECT [;] ; DELETE FROM orders", "SELECT 1 -- '\n; DELETE FROM orders -- '",
		"WITH t AS (SELECT 1) DELETE FROM orders", "WITH t AS (SELECT 1) UPDATE orders SET total = 0",
		"SELECT writefile('out', 'x')", "SELECT load_extension('x')", "SELECT readfile('go.mod')",
		"SELECT 1 FROM pragma_query_only(0)", "SELECT * FROM orders WHERE total = ?",
	} {
		if r := s.query(t, query); r.Ran || !strings.HasPrefix(r.Text, "error: ") {
			t.Errorf("%s gives %+v", query, r)
		}
	}
	if after := s.query(t, "SELECT COUNT(*), SUM(total) FROM orders").Text; after != before {
		t.Errorf("the database has %s, then %s", before, after)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
		t.Errorf("files %v, %v", files, err)
	}
	for _, statement := range []string{"DELETE FROM orders", "ATTACH 'other.db' AS other", "VACUUM INTO 'copy.db'"} {
		if _, err := s.conn.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s works where the words are not looked at", statement)
		}
	}
}

// endless are queries that never end, at the first row or at a later one.
var endless = []string{
	"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT COUNT(*) FROM t",
	"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t",
	"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t WHERE x IN (1, -1)",
	"SELECT COUNT(*) FROM orders a, orders b, orders c, orders d",
}

// The time of a query is bounded, and the database still answers afterwards.
func TestQuery_Time(t *testing.T) {
	s := filled(t)
	s.maxTime = 50 * time.Millisecond
	for _, query := range endless {
		start := time.Now()
		r := s.query(t, query)
		if r.Ran || r.Text != "error: the query takes too long" || time.Since(start) > 20*time.Second {
			t.Errorf("%s gives %+v after %v", query, r, time.Since(start))
		}
	}
	s.maxTime = maxTime
	if r := s.query(t, "SELECT 1"); r.Text != "1" {
		t.Errorf("afterwards: %+v", r)
	}
}

// A text or row that is built in memory has a bounded size.
func TestQuery_Memory(t *testing.T) {
	s := filled(t)
	for _, query := range []string{
		"SELECT zeroblob(1000000000)", "SELECT length(printf('%1000000000d', 1))", "SELECT randomblob(1000000000)",
		"SELECT replace(hex(zeroblob(4000)), '0', hex(zeroblob(4000)))",
		"SELECT length(group_concat(a.name)) FROM customers a, orders b",
		"SELECT " + strings.Repeat("NOT ", 200) + "1", "SELECT '" + strings.Repeat("x", 3000) + "'",
		"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 50),
	} {
		if r := s.query(t, query); r.Ran {
			t.Errorf("%.60s runs: %+v", query, r)
		}
	}
}

// The end of the caller's context is an error of the program, not of the query.
func TestQuery_Context(t *testing.T) {
	s := filled(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Query(ctx, endless[0]); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if r := s.query(t, "SELECT 1"); r.Text != "1" {
		t.Errorf("afterwards: %+v", r)
	}
}

// Many may ask at once, also while others' queries fail.
func TestQuery_Concurrent(t *testing.T) {
	s := filled(t)
	want := s.query(t, "SELECT SUM(total) FROM orders").Text
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 20 {
				if r, err := s.Query(t.Context(), "SELECT SUM(total) FROM orders"); err != nil || r.Text != want {
					t.Errorf("%+v, %v, want %s", r, err, want)
				}
				if r, err := s.Query(t.Context(), "SELECT nothing FROM orders"); err != nil || r.Ran {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
	wait.Wait()
}
