public import Foundation

/// A message for Amazon Device Messaging.
///
/// - SeeAlso: <https://developer.amazon.com/docs/adm/send-message.html>
public struct ADMMessage: PushPayload {
  public static var platform: PushPlatform { .adm }
  public var limit: Int { 6144 }
  public let body: Data

  public enum Priority: String, CaseIterable, Hashable, Sendable {
    case normal, high
  }

  /// - Parameters:
  ///   - data: For the app.
  ///   - notification: What newer devices show by themselves: `title`, `body` and more.
  ///   - consolidationKey: A later message of the same key replaces an earlier one that waits; at
  ///     most 64 characters.
  ///   - expiresAfter: How long it is kept, 60 s to 31 days; `nil` for a week.
  /// - Throws: ``PayloadError``; also when the message would say nothing.
  public init(
    data: [String: String] = [:], notification: [String: PayloadValue] = [:],
    consolidationKey: String? = nil, expiresAfter: Duration? = nil, priority: Priority? = nil
  ) throws(PayloadError) {
    guard !data.isEmpty || !notification.isEmpty else {
      throw PayloadError(.missing, "data", "or a notification is needed")
    }
    try PayloadError.check(consolidationKey, "consolidationKey")
    if let count = consolidationKey?.count, count > 64 {
      throw PayloadError(
        .outOfRange, "consolidationKey", "has \(count) characters; at most 64 are allowed")
    }
    let seconds = expiresAfter?.components.seconds
    try PayloadError.check(seconds, in: 60...31 * 86_400, "expiresAfter")
    var members: [String: PayloadValue] = [:]
    if !data.isEmpty { members["data"] = .object(.init(data)) }
    if !notification.isEmpty { members["notification"] = .object(notification) }
    members["consolidationKey"] = consolidationKey.map { .string($0) }
    members["expiresAfter"] = seconds.map { .int($0) }
    members["priority"] = priority.map { .string($0.rawValue) }
    let bytes = try PayloadValue.object(members).encoded(as: "message")
    try PayloadError.check(size: bytes.count, limit: 6144, of: "message")
    body = Data(bytes)
  }
}
