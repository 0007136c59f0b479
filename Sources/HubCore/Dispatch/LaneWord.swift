package import Foundation
import Synchronization

/// What a node has learnt of a lane that others, which share the work, need not find out by
/// themselves.
///
/// That a push service cannot be reached is not among them: the fault may be the node's own
/// network.
package struct LaneWord: Hashable, Sendable {
  package enum Kind: Int, CaseIterable, Sendable {
    /// The push service does not accept the credential. It is told until a push succeeds.
    case refused = 1
    /// The push service has asked this sender for a pause.
    case pause = 2
    /// So many handles are called dead that none is removed.
    case alarm = 3
  }

  package let lane: LaneKey
  package let kind: Kind
  /// The ``PushCredential/modifiedAt`` of the credential that it was said to.
  package let credential: Date
  /// Until when nothing is sent, by ``HubClock/steady``, which the nodes share; of an alarm, since
  /// which time of day what was removed is in doubt. In whole seconds.
  package let time: Date
  /// Refusals in a row; of an alarm, how many of the last answers called a handle dead.
  package let count: Int
  /// Of an alarm, how many answers those were; else 0.
  package let judged: Int
  /// What the push service has said to the credential.
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

/// What a node hears from the others.
package struct LaneNews: Sendable {
  /// What other living nodes say.
  package var words: [LaneWord]
  /// Lanes whose refusal this node has told, and with whose credential another has succeeded since.
  package var lifted: Set<LaneKey>
  /// How many nodes live, this one included.
  package var nodes: Int
  /// Notifications that this node has work of, and that were aborted, here or on another node.
  package var aborted: [NotificationID]

  package init(
    words: [LaneWord] = [], lifted: Set<LaneKey> = [], nodes: Int = 1,
    aborted: [NotificationID] = []
  ) {
    self.words = words
    self.lifted = lifted
    self.nodes = nodes
    self.aborted = aborted
  }
}

/// Among how many nodes a rate is divided that is meant for all of them. Between two heartbeats of
/// a node that comes or goes it is the number before.
package final class NodeCount: Sendable {
  private let count = Atomic(1)

  package init() {}

  package var value: Int { count.load(ordering: .relaxed) }
  package func set(_ nodes: Int) { count.store(max(1, nodes), ordering: .relaxed) }

  /// This node's share of a limit, at least 1.
  package func share(of limit: Int) -> Int { max(1, (limit + value - 1) / value) }
}
