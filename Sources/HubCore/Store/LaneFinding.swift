package import Foundation
import Synchronization

/// A node's finding about a lane that other nodes, which share the work, need not find out by
/// themselves. An unreachable push service is not one of them: the fault may be in the node's own
/// network.
package struct LaneFinding: Hashable, Sendable {
  package enum Kind: Int, CaseIterable, Sendable {
    /// The push service does not accept the credential. It is announced until a push succeeds.
    case refused = 1
    /// The push service has asked this sender for a pause.
    case pause = 2
    /// The removal of handles has stopped, because too many were reported dead.
    case alarm = 3
  }

  package let lane: LaneKey
  package let kind: Kind
  /// The ``PushCredential/modifiedAt`` of the credential in question.
  package let credential: Date
  /// Until when nothing is sent, by ``HubClock/steady``, which the nodes share; of an alarm, the
  /// time of day since which removals are in doubt. In whole seconds.
  package let time: Date
  /// Refusals in a row; of an alarm, the number of the last answers that called a handle dead.
  package let count: Int
  /// Of an alarm, the number of those answers; else 0.
  package let judged: Int
  /// The push service's answer to the credential.
  package let reason: String?

  package init(
    _ lane: LaneKey, _ kind: Kind, credential: Date, time: Date, count: Int = 0, judged: Int = 0,
    reason: String? = nil
  ) {
    self.lane = lane
    self.kind = kind
    self.credential = credential
    // The same whenever it is asked for: a rest ends up to a second later, a doubt begins earlier.
    let seconds = time.timeIntervalSince1970
    let whole = kind == .alarm ? seconds.rounded(.down) : (seconds - 0.01).rounded(.up)
    self.time = Date(timeIntervalSince1970: whole)
    self.count = count
    self.judged = judged
    self.reason = reason
  }
}

/// The answer to an exchange: what other nodes have found.
package struct PeerReport: Sendable {
  /// Findings of other living nodes.
  package var findings: [LaneFinding]
  /// Lanes whose refusal this node has told, and with whose credential another has succeeded since.
  package var lifted: Set<LaneKey>
  /// Number of living nodes, this one included.
  package var nodes: Int
  /// Notifications that this node has work of, and that were aborted, here or on another node.
  package var aborted: [NotificationID]

  package init(
    findings: [LaneFinding] = [], lifted: Set<LaneKey> = [], nodes: Int = 1,
    aborted: [NotificationID] = []
  ) {
    self.findings = findings
    self.lifted = lifted
    self.nodes = nodes
    self.aborted = aborted
  }
}

/// Number of nodes among which a rate for all of them is divided. Until the heartbeat that shows a
/// node that came or went it is the number before.
package final class NodeCount: Sendable {
  private let count = Atomic(1)

  package init() {}

  package var value: Int { count.load(ordering: .relaxed) }
  package func set(_ nodes: Int) { count.store(max(1, nodes), ordering: .relaxed) }

  /// This node's share of a limit, at least 1.
  package func share(of limit: Int) -> Int { max(1, (limit + value - 1) / value) }
}
