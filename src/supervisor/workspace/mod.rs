//! The throwaway workspace: clone, diff, apply. The tree an agent leaves is hostile input.
