package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of what a server may offer in all pages of a list. A page is a message, see [maxMessage].
const (
	maxPages     = 1000
	maxListed    = 10_000   // tools, or resources
	maxListBytes = 16 << 20 // in JSON
)

// list reads what the server offers. A server without resources, or without tools, has none of them.
func (s *Session) list(ctx context.Context) (about Description, err error) {
	offers := s.client.InitializeResult().Capabilities
	if offers.Tools != nil {
		err = pages("tools", func(cursor string) (int, string, any, error) {
			page, err := s.client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
			if err != nil {
				return 0, "", nil, err
			}
			err = about.addTools(page.Tools)
			return len(page.Tools), page.NextCursor, page, err
		})
	}
	if err == nil && offers.Resources != nil {
		err = pages("resources", func(cursor string) (int, string, any, error) {
			page, err := s.client.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return 0, "", nil, err
			}
			for _, r := range page.Resources {
				if r == nil {
					return 0, "", nil, errors.New("one of them is null")
				}
				about.Resources = append(about.Resources, Resource{r.URI, r.Name, r.Description, r.MIMEType})
			}
			return len(page.Resources), page.NextCursor, page, nil
		})
	}
	return about, err
}

// addTools adds the tools of a page.
func (d *Description) addTools(tools []*sdk.Tool) error {
	for _, t := range tools {
		converted, err := convertTool(t)
		if err != nil {
			return err
		}
		d.Tools = append(d.Tools, converted)
	}
	return nil
}

// pages reads the pages of a list until there are no more. read returns how many entries a page has, the cursor of the
// next, and the page itself.
func pages(what string, read func(cursor string) (n int, next string, page any, err error)) error {
	seen := map[string]bool{}
	cursor, entries, size := "", 0, 0
	for {
		n, next, page, err := read(cursor)
		if err != nil {
			return fmt.Errorf("list %s: %w", what, err)
		}
		data, err := json.Marshal(page)
		if err != nil {
			return fmt.Errorf("list %s: %w", what, err)
		}
		entries, size = entries+n, size+len(data)
		switch {
		case len(seen) >= maxPages || entries > maxListed || size > maxListBytes:
			return fmt.Errorf("list %s: there are more than %d pages, %d entries or %d MiB of them", what, maxPages, maxListed,
				maxListBytes>>20)
		case next == "":
			return nil
		case seen[next]:
			return fmt.Errorf("list %s: the cursor of page %d is one of before: the list has no end", what, len(seen)+2)
		}
		seen[next], cursor = true, next
	}
}
