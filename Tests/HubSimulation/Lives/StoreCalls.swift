package import HubCore

/// The calls and refusals of a store that a plan names by their numbers.
package enum StoreCalls {
  /// Calls whose answer a plan may have lost, without their labels.
  package static let names = [
    "claimWork", "checkpoint", "accept", "waitingRetries", "releaseWork", "releaseSchedules",
    "nextSchedule", "retryLanes", "dueRetries", "retries", "nextRetry", "exchange", "targets",
    "directTargets", "credentials", "directoryVersion", "notification", "unclaimedWork", "beat",
    "putInstallation", "deleteInstallation", "createRegistration", "abort", "cancelSchedule",
    "putCredential", "eraseUser",
  ]

  /// The errors that a database in trouble answers with.
  package static let errors: [StoreError] = [
    .diskFull, .locked, .busy, .cannotOpen("the server takes no writes"),
    .engine(code: 0, message: "the database is starting up"),
  ]

  /// The name of a function without its labels.
  static func base(_ call: String) -> String {
    String(decoding: call.utf8.prefix { $0 != UInt8(ascii: "(") }, as: UTF8.self)
  }
}
