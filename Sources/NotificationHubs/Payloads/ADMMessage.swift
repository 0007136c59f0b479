public import Foundation

/// A message for Amazon Device Messaging.
///
/// - SeeAlso: <https://developer.amazon.com/docs/adm/send-message.html>
public struct ADMMessage: PushPayload {
  /// Amazon Device Messaging.
  public static var platform: PushPlatform { .adm }
  /// 6144 bytes.
  public var limit: Int { 6144 }
  /// A JSON object.
  public let body: Data

  /// The delivery priority.
  public enum Priority: String, CaseIterable, Hashable, Sendable {
    /// Normal or high priority.
    case normal, high
  }

  /// Creates a message.
  ///
  /// - Parameters:
  ///   - data: Data for the app.
  ///   - notification: The content that newer devices show by themselves: `title`, `body` and more.
  ///   - consolidationKey: A key with which a later message replaces an undelivered earlier one; at
  ///     most 64 characters.
  ///   - expiresAfter: The time for which the message is stored, 60 s to 31 days; `nil` for a week.
  /// - Throws: ``PayloadError``, also if the message would be empty.
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
