package main

import "github.com/goart-dev/art"

// inText has queries written in the text of replies, in place of tool calls. A model that was trained on code and
// little on tools writes valid queries in a block, and guesses when it is offered a tool.
var inText bool

// begin is what the agent that is trained begins with.
func begin() []art.Message {
	if *prompt == good {
		return prompted()
	}
	return plain()
}

// plain tells none of the conventions.
func plain() []art.Message { return []art.Message{art.System(task())} }

// task says what to do.
func task() string {
	if inText {
		return "Answer the question about the database. First write one SQLite query in a ```sql block: you get its rows. " +
			"Then reply with the answer alone: a number or a name."
	}
	return "Answer the question about the database. First call query, then reply with the answer alone: a number or a " +
		"name."
}

// prompted tells the conventions, with worked examples.
func prompted() []art.Message {
	sum := called(2, "SELECT SUM(purchases.amount) / 100.0 FROM purchases JOIN buyers ON buyers.id = purchases.buyer_id "+
		"WHERE buyers.city = 'Bonn' AND buyers.deleted = 0 AND purchases.cancelled_at IS NULL "+
		"AND purchases.bought_on BETWEEN '2024-02-01' AND '2024-06-28'")
	count := called(6, "SELECT COUNT(*) FROM purchases WHERE shop = 'market' AND status <> 'cancelled'")
	return []art.Message{
		art.System(task() + "\n" +
			"Amounts are stored in cents: divide by 100.0 for euros.\n" +
			"Cancelled events do not count: leave them out always.\n" +
			"Where the question is about people, deleted people do not count: leave them out too."),
		ask("buyers(id, name, city, deleted 0/1)\n"+
			"flowers(id, name, colour, price)\n"+
			"purchases(id, buyer_id, flower_id, bought_on '2024-05-17', shop, amount, cancelled_at NULL/date)",
			"How much did buyers from Bonn pay for purchases from 2024-02-01 to 2024-06-28, in euros?"),
		sum, result(&sum, "2713.45"), art.Assistant("2713.45"),
		ask("buyers(buyer_id, name, city, account 'open'/'deleted')\n"+
			"flowers(flower_id, name, colour, price)\n"+
			"purchases(purchase_id, buyer_id, flower_id, bought_on '2024-05-17', shop, amount, status 'done'/'cancelled')",
			"How many purchases at the market shop were there?"),
		count, result(&count, "83"), art.Assistant("83"),
	}
}

// result is what answers a message with a query.
func result(reply *art.Message, text string) art.Message {
	c, _ := read(reply)
	return c.result(text)
}

// ask is the message that asks a question.
func ask(schema, question string) art.Message { return art.User(schema + "\n" + question) }
