package runs

// The columns of a trajectory file: one row per trajectory, in order. A group without trajectories is one row whose
// trajectory_index and reward are null. Pointers are columns that may be null.
//
// Integers are 64 bits unless the domain has fewer. What these columns cannot hold (invalid UTF-8, the difference
// between no list and an empty list) is in the column exact; see [exactRow].
type trajectoryRow struct {
	GroupIndex      int64  `parquet:"group_index"`
	TrajectoryIndex *int64 `parquet:"trajectory_index,optional"`

	Reward          *float64 `parquet:"reward,optional"`
	Metrics         *string  `parquet:"metrics,optional"`                      // JSON; see encodeMetrics
	Metadata        *string  `parquet:"metadata,optional"`                     // JSON; see encodeLabels
	Logs            []string `parquet:"logs,list"`                             //
	Start           int64    `parquet:"start,timestamp(microsecond),optional"` // null for the zero time
	StartExact      []byte   `parquet:"start_exact"`                           // time.Time.MarshalBinary
	Duration        int64    `parquet:"duration_ns"`                           // nanoseconds
	FirstPolicyStep *int64   `parquet:"first_policy_step,optional"`            // null without samples
	LastPolicyStep  *int64   `parquet:"last_policy_step,optional"`             //

	Messages            []messageRow `parquet:"messages,list"`
	Tools               []toolRow    `parquet:"tools,list"`
	AdditionalHistories []historyCol `parquet:"additional_histories,list"`

	Group *groupRow `parquet:"group,optional"` // in the first row of a group only
	Exact *exactRow `parquet:"exact,optional"`
}

// groupRow holds the fields of a group other than its trajectories.
type groupRow struct {
	Trajectories *int64       `parquet:"trajectories,optional"` // their number; null for nil
	Failures     []failureRow `parquet:"failures,list"`
	Metrics      *string      `parquet:"metrics,optional"`
	Metadata     *string      `parquet:"metadata,optional"`
	Logs         []string     `parquet:"logs,list"`
}

type failureRow struct {
	Scenario int64  `parquet:"scenario"`
	Attempt  int64  `parquet:"attempt"`
	Tries    int64  `parquet:"tries"`
	Type     string `parquet:"type"`
	Message  string `parquet:"message"`
	Stack    string `parquet:"stack"`
}

type historyCol struct {
	Messages []messageRow `parquet:"messages,list"`
	Tools    []toolRow    `parquet:"tools,list"`
}

type messageRow struct {
	Role       string        `parquet:"role"`
	Content    string        `parquet:"content"`
	Reasoning  string        `parquet:"reasoning"`
	ToolCalls  []toolCallRow `parquet:"tool_calls,list"`
	ToolCallID string        `parquet:"tool_call_id"`
	Name       string        `parquet:"name"`
	Trainable  bool          `parquet:"trainable"` // it has a sample
	Sample     *sampleRow    `parquet:"sample,optional"`
	Wire       *string       `parquet:"wire,optional"` // OpenAI's JSON, if it holds more than the columns
}

type toolCallRow struct {
	ID        string `parquet:"id"`
	Name      string `parquet:"name"`
	Arguments string `parquet:"arguments"`
}

type toolRow struct {
	Name        string  `parquet:"name"`
	Description string  `parquet:"description"`
	Parameters  *string `parquet:"parameters,optional"` // JSON Schema
	Wire        *string `parquet:"wire,optional"`       // as for messages
}

type sampleRow struct {
	PromptIDs []int32     `parquet:"prompt_ids,list"`
	IDs       []int32     `parquet:"ids,list"`
	Logprobs  []float32   `parquet:"logprobs,list"`
	Sampled   []float32   `parquet:"sampled,list"`
	Forced    []bool      `parquet:"forced,list"`
	Settings  settingsRow `parquet:"settings"`
	Step      int64       `parquet:"step"`
	Finish    string      `parquet:"finish"`
}

type settingsRow struct {
	Temperature float64  `parquet:"temperature"`
	TopP        float64  `parquet:"top_p"`
	TopK        int64    `parquet:"top_k"`
	MaxTokens   int64    `parquet:"max_tokens"`
	Stop        []string `parquet:"stop,list"`
	Seed        uint64   `parquet:"seed"`
	// Shape is null where all of it is off. It is a group of its own because the first files do not have it: its lists
	// must not count among theirs; see [exactRow].
	Shape *shapeRow `parquet:"shape,optional"`
	// Limits is null where all of it is off. It is newer than Shape.
	Limits *limitsRow `parquet:"limits,optional"`
}

type limitsRow struct {
	AllowedTokenIDs []int32  `parquet:"allowed_token_ids,list"`
	BadWords        []string `parquet:"bad_words,list"`
	IgnoreEOS       bool     `parquet:"ignore_eos"`
}

type shapeRow struct {
	MinP              float64   `parquet:"min_p"`
	RepetitionPenalty float64   `parquet:"repetition_penalty"`
	PresencePenalty   float64   `parquet:"presence_penalty"`
	FrequencyPenalty  float64   `parquet:"frequency_penalty"`
	LogitBias         []biasRow `parquet:"logit_bias,list"` // by ascending ids
	MinTokens         int64     `parquet:"min_tokens"`
	StopTokenIDs      []int32   `parquet:"stop_token_ids,list"`
	ResponseFormat    *string   `parquet:"response_format,optional"` // JSON
	ToolChoice        *string   `parquet:"tool_choice,optional"`     // JSON
}

type biasRow struct {
	ID   int32   `parquet:"id"`
	Bias float64 `parquet:"bias"`
}
