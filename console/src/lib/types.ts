// What the hub answers: the types are made from its own OpenAPI document.
import type * as v1 from "../api.d.ts";

export type { Agent, AgentPage, AuditPage, AuditRecord, Channel, ClosedMany, CursorPage, Expectation, Explained, Graph, Health, Key, KeyList, Last, NewKey, Participant, PathPage, Person, RequestPage, SessionList, SignedIn, Step, Summary, Task, TaskPage, Turn, TurnPage } from "../api.d.ts";
export type { ChannelEventPage as EventPage, Event as Envelope, PastState as Past, Request as Ask, Row, Session } from "../api.d.ts";

export type RowPage = Omit<v1.ChannelPage, "channels"> & { channels: v1.Row[] };
export type GraphNode = v1.Graph["nodes"][number];
export type GraphEdge = v1.Graph["edges"][number];
