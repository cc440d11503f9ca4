package main

import (
	"github.com/goart-dev/art"
)

// plain is what the agent that is trained begins with. It tells none of the conventions.
var plain = []art.Message{art.System("Answer the question about the database. First call query, then reply with the " +
	"answer alone: a number or a name.")}

// prompted is what the untrained agent of the baseline begins with: the conventions, and worked examples.
var prompted = []art.Message{
	art.System("Answer the question about the database. First call query, then reply with the answer alone: a number " +
		"or a name.\n" +
		"Amounts are stored in cents: divide by 100.0 for euros.\n" +
		"Cancelled events do not count: leave them out always.\n" +
		"Where the question is about people, deleted people do not count: leave them out too."),
	ask("buyers(id, name, city, deleted 0/1)\n"+
		"flowers(id, name, colour, price)\n"+
		"purchases(id, buyer_id, flower_id, bought_on '2024-05-17', shop, amount, cancelled_at NULL/date)",
		"How much did buyers from Bonn pay for purchases from 2024-02-01 to 2024-06-28, in euros?"),
	called(2, "SELECT SUM(purchases.amount) / 100.0 FROM purchases JOIN buyers ON buyers.id = purchases.buyer_id "+
		"WHERE buyers.city = 'Bonn' AND buyers.deleted = 0 AND purchases.cancelled_at IS NULL "+
		"AND purchases.bought_on BETWEEN '2024-02-01' AND '2024-06-28'"),
	art.ToolResult("call_2", "2713.45"),
	art.Assistant("2713.45"),
	ask("buyers(buyer_id, name, city, account 'open'/'deleted')\n"+
		"flowers(flower_id, name, colour, price)\n"+
		"purchases(purchase_id, buyer_id, flower_id, bought_on '2024-05-17', shop, amount, status 'done'/'cancelled')",
		"How many purchases at the market shop were there?"),
	called(6, "SELECT COUNT(*) FROM purchases WHERE shop = 'market' AND status <> 'cancelled'"),
	art.ToolResult("call_6", "83"),
	art.Assistant("83"),
}

// ask is the message that asks a question.
func ask(schema, question string) art.Message { return art.User(schema + "\n" + question) }
