public import Foundation

/// A payload in the form of one push service, checked when it was made: what it encodes to is valid
/// and within the service's limit.
///
/// ```swift
/// let payload = try APNsPayload(.init(alert: .init(title: "Tea", body: "It is ready.")))
/// print("\(payload.size) of \(payload.limit) bytes")
/// try await hub.send(PushNotification(payload), to: "kitchen")
/// ```
public protocol PushPayload: Hashable, Sendable {
  /// Whose devices it is for.
  static var platform: PushPlatform { get }
  /// What is sent; equal payloads have equal bytes.
  var body: Data { get }
  /// The media type of ``body``.
  var contentType: String { get }
  /// Headers for the push service.
  var headers: [String: String] { get }
  /// What the push service counts, in bytes.
  var size: Int { get }
  /// The most that ``size`` may be.
  var limit: Int { get }
}

extension PushPayload {
  public var contentType: String { WireName.json }
  public var headers: [String: String] { [:] }
  public var size: Int { body.count }
}

extension PushNotification {
  /// A native notification of this payload.
  public init(_ payload: some PushPayload) {
    self.init(
      format: .native(type(of: payload).platform), body: payload.body,
      contentType: payload.contentType, headers: payload.headers)
  }
}
