public import Foundation
import Wire

/// A notification for Windows: a toast, a tile, a badge or raw bytes.
///
/// ```swift
/// let toast = try WNSPayload(toast: .init(lines: ["Tea", "It is ready."], launch: "pot=2"))
/// let badge = try WNSPayload(badge: .number(3))
/// ```
/// - SeeAlso:
///   <https://learn.microsoft.com/windows/apps/design/shell/tiles-and-notifications/push-request-response-headers>
public struct WNSPayload: PushPayload {
  /// Windows Push Notification Services.
  public static var platform: PushPlatform { .wns }
  /// 5000 bytes.
  public var limit: Int { 5000 }
  /// XML in UTF-8, or the raw bytes.
  public let body: Data
  /// `application/xml`, or `application/octet-stream` for raw bytes.
  public let contentType: String
  /// The headers for WNS, including the type of notification.
  public let headers: [String: String]

  /// Delivery options; WNS decides those that are `nil`.
  public struct Delivery: Hashable, Sendable {
    /// The priority; the default is 1 for a toast, 2 for a tile or badge, 3 for raw bytes.
    public enum Priority: Int, CaseIterable, Hashable, Sendable {
      /// The highest priority.
      case high = 1
      /// The lower priorities, in descending order.
      case medium, low, veryLow
    }

    /// Whether the notification is stored for an offline device; by default raw notifications are
    /// not.
    public var isCached: Bool?
    /// The time for which it may wait, in whole seconds, at least 1.
    public var ttl: Int?
    /// A tag with which it replaces an earlier one: 1 to 16 letters and digits.
    public var tag: String?
    /// A group that tells equal tags apart, for toasts only: 1 to 16 letters and digits.
    public var group: String?
    /// The priority; `nil` for the default of the type.
    public var priority: Priority?

    /// Creates delivery options.
    public init(
      isCached: Bool? = nil, ttl: Int? = nil, tag: String? = nil, group: String? = nil,
      priority: Priority? = nil
    ) {
      self.isCached = isCached
      self.ttl = ttl
      self.tag = tag
      self.group = group
      self.priority = priority
    }

    func headers(type: String) throws(PayloadError) -> [String: String] {
      try PayloadError.check(ttl, in: 1...Int(Int32.max), "X-WNS-TTL")
      for (name, word) in [("X-WNS-Tag", tag), ("X-WNS-Group", group)] {
        guard let word else { continue }
        guard word.utf8.allSatisfy(\.isLetterOrDigit), (1...16).contains(word.utf8.count)
        else { throw PayloadError(.malformed, name, "takes 1 to 16 letters and digits") }
      }
      if group != nil, type != "wns/toast" {
        throw PayloadError(.conflicting, "X-WNS-Group", "is for toasts only")
      }
      var headers = [WireName.wnsType: type]
      headers["X-WNS-Cache-Policy"] = isCached.map { $0 ? "cache" : "no-cache" }
      headers["X-WNS-TTL"] = ttl.map(String.init)
      headers["X-WNS-Tag"] = tag
      headers["X-WNS-Group"] = group
      headers["X-WNS-PRIORITY"] = priority.map { String($0.rawValue) }
      return headers
    }
  }

  /// Creates a toast notification.
  /// - Throws: ``PayloadError``.
  public init(toast: Toast, delivery: Delivery = Delivery()) throws(PayloadError) {
    try self.init(xml: try toast.element(), type: "wns/toast", delivery)
  }

  /// Creates new content for the app's tile in the start menu.
  /// - Throws: ``PayloadError``.
  public init(tile: Tile, delivery: Delivery = Delivery()) throws(PayloadError) {
    try self.init(xml: try tile.element(), type: "wns/tile", delivery)
  }

  /// Creates a badge for the app's tile or taskbar button.
  /// - Throws: ``PayloadError``.
  public init(badge: Badge, delivery: Delivery = Delivery()) throws(PayloadError) {
    try self.init(xml: try badge.element(), type: "wns/badge", delivery)
  }

  /// Creates a raw notification: 1 to 5000 bytes for the app itself.
  /// - Throws: ``PayloadError``.
  public init(raw: Data, delivery: Delivery = Delivery()) throws(PayloadError) {
    guard !raw.isEmpty else { throw PayloadError(.missing, "body", "is empty") }
    try self.init(
      body: raw, contentType: "application/octet-stream", type: "wns/raw", delivery)
  }

  private init(xml: WNSElement, type: String, _ delivery: Delivery) throws(PayloadError) {
    try self.init(
      body: Data((#"<?xml version="1.0" encoding="utf-8"?>"# + xml.text).utf8),
      contentType: "application/xml", type: type, delivery)
  }

  private init(
    body: Data, contentType: String, type: String, _ delivery: Delivery
  ) throws(PayloadError) {
    try PayloadError.check(size: body.count, limit: 5000, of: "body")
    self.body = body
    self.contentType = contentType
    headers = try delivery.headers(type: type)
  }
}

/// A serialized XML element; texts are escaped.
struct WNSElement {
  private let name: String
  private var attributes = ""
  private var content = ""

  /// - Parameter attributes: The attributes in order; those that are `nil` are left out.
  init(_ name: String, _ attributes: [(String, String?)] = [], text: String = "") {
    self.name = name
    for case (let name, let value?) in attributes {
      // An XML reader turns a plain line break in an attribute into a blank.
      let escaped = value.xmlAttributeEscaped.replacingOccurrences(of: "\n", with: "&#xA;")
        .replacingOccurrences(of: "\t", with: "&#x9;")
      self.attributes += " \(name)=\"\(escaped)\""
    }
    content = text.xmlEscaped
  }

  mutating func append(_ child: WNSElement) { content += child.text }

  func appending(_ children: [WNSElement]) -> WNSElement {
    var next = self
    for child in children { next.append(child) }
    return next
  }

  var text: String {
    content.isEmpty
      ? "<\(name)\(attributes)/>" : "<\(name)\(attributes)>\(content)</\(name)>"
  }
}
