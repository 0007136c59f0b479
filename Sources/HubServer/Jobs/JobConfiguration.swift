package import Foundation

/// Where jobs may read and write, and how they go about it.
package struct JobConfiguration: Sendable {
  /// The directory for the working files of jobs under way; made when it is missing.
  package var workspace: URL
  /// The hosts that jobs may fetch from and write to; none unless an operator names them. `host` and
  /// `*.suffix` (every host below a domain) by HTTPS at its own port and at public addresses only;
  /// `host:port`, an IP address and `localhost` wherever that is, by HTTP, too.
  package var allowedHosts: [String] = []
  /// PEM certificates trusted beside the system's store.
  package var extraAnchorsPEM: [UInt8] = []
  /// The directory in which `file:` URIs must lie; `nil` allows none.
  package var directory: URL?
  /// The name of the namespace, with which the paths of results begin.
  package var namespace = "belfry"
  /// How long a job waits before it starts, so that a client that reads it right after submitting
  /// finds it as the service shows it then: not yet running.
  package var startDelay = Duration.seconds(1)
  /// Lines, or registrations, between two checkpoints.
  package var batch = 256
  /// The largest file that is fetched, in bytes.
  package var maximumInput: Int64 = 16 << 30
  /// The longest line of an import, in bytes: the longest body of a request.
  package var maximumLine = HubAPIConfiguration.maxBodyBytes
  /// How often a fetch or a write is tried before the job fails.
  package var attempts = 4

  package init(workspace: URL) { self.workspace = workspace }
}

/// Why a job cannot go on; its text stands in the job.
struct JobFault: Error, Hashable, CustomStringConvertible {
  let description: String
  /// Another try may help.
  let isTransient: Bool

  init(_ description: String, isTransient: Bool = false) {
    self.description = description
    self.isTransient = isTransient
  }
}
