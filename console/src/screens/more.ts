// Screens that are loaded when one of them is opened.
import type { Component } from "svelte";
import Access from "./Access.svelte";
import Audit from "./Audit.svelte";
import Health from "./Health.svelte";
import Peers from "./Peers.svelte";
import Sessions from "./Sessions.svelte";
import Tasks from "./Tasks.svelte";

export const screens: Record<string, Component> = { tasks: Tasks, audit: Audit, health: Health, access: Access, sessions: Sessions, peers: Peers };
