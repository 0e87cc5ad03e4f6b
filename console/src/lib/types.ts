// What the hub answers, as far as the page reads it.

export interface Envelope {
  position: string;
  sequence: number;
  envelope_id: string;
  channel_id: string;
  sender_id: string;
  audience: string[] | null;
  event_type: string;
  event_data: Record<string, unknown>;
  causation_id: string | null;
  task_id: string | null;
  priority: string;
  created_at: string;
}

export interface EventPage {
  events: Envelope[];
  next: string;
  prev?: string;
  first?: string;
  more: boolean;
  scanned?: number;
}

export interface Turn {
  agent_id: string;
  name: string;
  kind?: string | null;
  online: boolean;
  since: string;
  handed_at?: string | null;
  due_at?: string | null;
  overdue: boolean;
}

export interface Person {
  agent_id: string;
  name: string;
  kind?: string | null;
  online: boolean;
}

export interface Row {
  channel_id: string;
  title: string;
  type: string;
  state: string;
  close_reason?: string | null;
  labels: Record<string, string>;
  participants: Person[];
  created_at: string;
  closed_at?: string | null;
  expires_at?: string | null;
  length: number;
  position: string;
  last?: { sequence: number; at: string; sender_id: string; event_type: string; text: string } | null;
  turn?: Turn | null;
  turns?: { taken: number; most: number | null } | null;
  requests_open: number;
  quarantined?: boolean | string;
}

export interface RowPage {
  channels: Row[];
  next?: string;
  prev?: string;
  position?: string;
  total?: number;
}

export interface Participant {
  agent_id: string;
  role: string;
  order?: number;
  joined_at?: string;
  hidden?: boolean;
  removed?: boolean;
}

export interface Expectation {
  name: string;
  on_violation: string;
  seconds: number;
  waits: { agent_id: string; since: string; due_at: string; fired_at?: string | null }[];
}

export interface Channel {
  channel_id: string;
  manifest: { type: string; version: number };
  creator_id: string;
  participants: Participant[];
  state: string;
  created_at: string;
  closed_at: string | null;
  expires_at: string | null;
  close_reason: string | null;
  labels: Record<string, string>;
  folded_state: unknown;
  expected_next_speaker: string | null;
  pending_acks?: string[];
  length: number;
  position: string;
  names: Record<string, string>;
  warnings?: string[];
  turn?: Turn | null;
  expectations?: Expectation[];
  requests_open?: number;
}

export interface Variable {
  key: string;
  value: unknown;
  sequence: number;
  envelope_id: string;
  sender_id: string;
}

export interface Past {
  at: { sequence: number; position: string; envelope_id: string; created_at: string };
  state: string;
  close_reason?: string | null;
  folded_state: unknown;
  turn?: Turn | null;
  participants: Participant[];
  context: Variable[];
}

export interface Explained {
  name: string;
  says: string;
  holds: boolean;
  read?: { what: string; value: unknown; sequence: number; envelope_id: string; sender_id: string }[];
  of?: Explained[];
}

export interface Step {
  sequence: number;
  envelope_id: string;
  created_at: string;
  turn: number;
  speaker_id: string;
  by: string;
  rule?: number | string | null;
  tool?: string;
  decision: { speaker_id?: string; end?: boolean; reason?: string };
  because?: Explained | null;
  passed_over?: { rule: number | string; because: Explained }[];
  changed?: { key: string; before: unknown; after: unknown }[];
}

export interface GraphNode {
  id: string;
  kind: string;
  label: string;
  agent_id?: string;
  taken: boolean;
  current: boolean;
}

export interface GraphEdge {
  id: string;
  from: string;
  to: string;
  kind: string;
  rule?: number | string | null;
  label?: string;
  priority?: number;
  turns?: number[];
}

export interface Graph {
  initial: string;
  max_turns: number | null;
  nodes: GraphNode[];
  edges: GraphEdge[];
  findings?: { severity?: string; message?: string }[];
}

export interface Ask {
  request_id: string;
  kind: string;
  channel_id: string;
  channel_title?: string;
  asked_by: string;
  for?: string;
  asked_at: string;
  due_at?: string | null;
  if_nobody_answers?: string;
  state: "open" | "answered" | "expired" | "cancelled";
  title: string;
  body?: string;
  action?: { name: string; arguments?: unknown; digest: string } | null;
  choices?: { id: string; label?: string; consequence?: string }[];
  trigger?: { envelope_id: string; sequence?: number } | null;
  answer?: { choice?: string; text?: string; note?: string; by: { agent_id?: string; key?: string; connection?: string }; at: string; envelope_id: string } | null;
  similar?: { approved: number; denied: number; last?: string } | null;
  reason?: string;
}

export interface Agent {
  passport: { name: string; agent_id: string; kind: string | null; owner: string; provider: string | null; model: string | null; region: string | null; created_at: string; [key: string]: unknown };
  resume?: Record<string, unknown>;
  rule?: Record<string, unknown>;
  online?: boolean;
  pending?: number;
  pending_inbox?: number;
  last_seen_at?: string | null;
  connections?: { dialect: string; address: string; since: string }[];
  open_channels?: number;
  turns_waiting?: number;
  oldest_turn_at?: string | null;
  cursors?: unknown;
}

export interface Session {
  role: "anonymous" | "operator" | "reader" | "agent";
  agent?: string;
  agent_id?: string;
  key?: string;
  via?: string;
  expires_at?: string | null;
  may: string[];
  keys_exist: boolean;
  hub: { version: string; name: string; started_at: string; epoch?: string };
  now: string;
}

export interface Summary {
  at: string;
  position: string;
  channels: { pending: number; active: number; overdue: number; waiting_for_people: number; quarantined: number; by_type: Record<string, number> };
  agents: { registered: number; online: number; people: number };
  tasks: { created: number; running: number };
  requests: { open: number; due_within_5m: number; overdue: number };
  admitted_1m: number;
  refused_1m: number;
}

export interface Task {
  task_id: string;
  state: string;
  channel_id?: string;
  owner_id: string;
  title?: string;
  created_at: string;
  updated_at?: string;
  expires_at?: string;
  [key: string]: unknown;
}

export interface Key {
  id: string;
  role: string;
  agent?: string;
  created_at?: string;
  created?: string;
}
