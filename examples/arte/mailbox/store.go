package mailbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite", in Go
)

// Store is a mailbox in an SQLite database, with a full-text index. It is safe for concurrent use.
type Store struct{ db *sql.DB }

const schema = `
	CREATE TABLE mail (id TEXT PRIMARY KEY, sender TEXT, recipient TEXT, date TEXT, subject TEXT, body TEXT);
	CREATE VIRTUAL TABLE words USING fts5(subject, body, content='mail', content_rowid='rowid');`

// Open puts messages into a database in memory.
func Open(ctx context.Context, messages []Message) (*Store, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if err := fill(ctx, db, messages); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db}, nil
}

// fill makes the tables, in one transaction.
func fill(ctx context.Context, db *sql.DB, messages []Message) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, "INSERT INTO mail VALUES (?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, m := range messages {
		if _, err := insert.ExecContext(ctx, m.ID, m.From, m.To, m.Date, m.Subject, m.Body); err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO words(words) VALUES ('rebuild')"); err != nil {
		return err
	}
	return tx.Commit()
}

// Close frees the database.
func (s *Store) Close() error { return s.db.Close() }

// Query says what to search for. Empty fields do not filter.
type Query struct {
	// Keywords are words that all occur in the subject or the body.
	Keywords      string
	From          string
	After, Before string // first and last date, 2024-03-14
}

// Search returns the newest messages that match, at most limit. A query without a word matches nothing.
func (s *Store) Search(ctx context.Context, q Query, limit int) ([]Message, error) {
	words := strings.Fields(strings.ReplaceAll(q.Keywords, `"`, " "))
	if len(words) == 0 {
		return nil, nil
	}
	where := "WHERE words MATCH ?"
	args := []any{`"` + strings.Join(words, `" "`) + `"`} // quoted, a word is no operator; side by side means and
	filters := [][2]string{{"sender = ? COLLATE NOCASE", q.From}, {"date >= ?", q.After}, {"date <= ?", q.Before}}
	for _, filter := range filters {
		if filter[1] != "" {
			where += " AND " + filter[0]
			args = append(args, filter[1])
		}
	}
	rest := "JOIN words ON words.rowid = mail.rowid " + where + " ORDER BY date DESC, id LIMIT ?"
	return s.query(ctx, rest, append(args, limit)...)
}

// Read returns the message of an id; ok is false when there is none.
func (s *Store) Read(ctx context.Context, id string) (m Message, ok bool, err error) {
	found, err := s.query(ctx, "WHERE id = ?", id)
	if err != nil || len(found) == 0 {
		return Message{}, false, err
	}
	return found[0], true, nil
}

func (s *Store) query(ctx context.Context, rest string, args ...any) ([]Message, error) {
	const columns = "SELECT id, sender, recipient, date, mail.subject, mail.body FROM mail "
	rows, err := s.db.QueryContext(ctx, columns+rest, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []Message
	for rows.Next() {
		var m Message
		if err := rows.Scan(&m.ID, &m.From, &m.To, &m.Date, &m.Subject, &m.Body); err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, rows.Err()
}
