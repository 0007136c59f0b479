import Foundation
import NotificationHubs
import Wire

/// The header fields of a send, looked up by lower-case name.
package struct SendHeaders: Sendable {
  /// The first value of each name; repeated fields, which HTTP allows, are not used in a send.
  let fields: [String: String]
  /// Names that came more than once with different values, whose meaning is ambiguous.
  let contradictory: Set<String>

  /// - Parameter fields: The fields as received, with names in any letter case.
  package init(_ fields: some Sequence<(name: String, value: String)>) {
    var kept: [String: String] = [:]
    var contradictory: Set<String> = []
    for (name, value) in fields {
      let name = name.lowercased()
      if let first = kept[name] {
        if first != value { contradictory.insert(name) }
      } else {
        kept[name] = value
      }
    }
    self.fields = kept
    self.contradictory = contradictory
  }

  private init(fields: [String: String], contradictory: Set<String>) {
    self.fields = fields
    self.contradictory = contradictory
  }

  /// The same fields with another content type: that of a part of the body.
  func with(contentType: String?) -> SendHeaders {
    var fields = fields
    fields[SendHeaderName.contentType] = contentType
    return SendHeaders(fields: fields, contradictory: contradictory)
  }

  /// - Parameter name: In lower case.
  subscript(name: String) -> String? { fields[name] }
}

/// The names of the headers that the hub reads, in lower case (docs/protocol/rest.md, section 5.1).
enum SendHeaderName {
  /// The common prefix of all headers for the hub itself.
  static let hubPrefix = "servicebusnotification-"
  static let format = "servicebusnotification-format"
  static let tags = "servicebusnotification-tags"
  static let tagsAlias = "tags"
  static let apnsExpiryDate = "servicebusnotification-apns-expiry"
  static let apnsExpiration = "apns-expiration"
  static let apnsPriority = "apns-priority"
  /// Older spellings, each with its replacement.
  static let apnsAliases = [
    ("x-apns-priority", "apns-priority"), ("x-apns-expiration", "apns-expiration"),
    ("x-apns-push-type", "apns-push-type"),
  ]
  static let wnsType = "x-wns-type"
  static let mpnsTarget = "x-windowsphone-target"
  static let mpnsClass = "x-notificationclass"
  static let contentType = "content-type"
  static let deviceHandle = "servicebusnotification-devicehandle"
  static let scheduleTime = "servicebusnotification-scheduletime"
  static let p256dh = "p256dh"
  static let auth = "auth"
  /// Beyond the original: see `docs/extensions.md`.
  static let idempotencyKey = "idempotency-key"
}

/// The headers of a send for the push services, not for the hub: chosen by name, limited, and
/// without characters that could end a header line. Their values are up to the push service
/// (docs/protocol/rest.md, section 5.1).
enum PassThroughHeaders {
  /// More than any push service defines.
  static let maxCount = 32
  /// Maximum size of all names and values together; those of APNs and WNS stay far below.
  static let maxBytes = 4096

  /// - Returns: Names in lower case; empty values left out.
  /// - Throws: ``HubFailure`` with 400.
  static func chosen(
    from headers: SendHeaders, format: NotificationRequest.Format
  ) throws -> [String: String] {
    var kept: [String: String] = [:]
    for (name, value) in headers.fields where isForPushService(name, format: format) {
      let value = value.trimmingBlanks
      guard !value.isEmpty else { continue }
      guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        throw HubFailure(
          status: 400, message: "The header '\(name)' contains a control character")
      }
      kept[name] = value
    }
    for (old, new) in SendHeaderName.apnsAliases {
      guard let value = headers[old]?.trimmingBlanks, !value.isEmpty, kept[new] == nil else {
        continue
      }
      kept[new] = value
    }
    let size = kept.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    guard kept.count <= maxCount, size <= maxBytes else {
      throw HubFailure(
        status: 400,
        message: "The headers for the push service exceed \(maxCount) fields or \(maxBytes) bytes")
    }
    return kept
  }

  /// Whether a push service gets a header; a template send reaches every platform, so each gets
  /// only its own.
  static func isRead(by platform: PushPlatform, _ name: String) -> Bool {
    let traits = platform.traits
    if traits.headers.contains(name) { return true }
    guard let prefix = traits.headerPrefix, name.hasPrefix(prefix) else { return false }
    // MPNS accepts any `X-` header that does not belong to another service.
    return prefix != "x-" || !ownPrefixes.contains { name.hasPrefix($0) }
  }

  /// The prefixes of platforms that accept no other headers.
  private static let ownPrefixes = PushPlatform.allCases.compactMap(\.traits.headerPrefix)
    .filter { $0 != "x-" }

  private static func isForPushService(
    _ name: String, format: NotificationRequest.Format
  ) -> Bool {
    if ownPrefixes.contains(where: { name.hasPrefix($0) }) { return true }
    if PushPlatform.browser.traits.headers.contains(name) {
      return format == .native(.browser) || format == .template
    }
    if name == SendHeaderName.mpnsTarget || name == SendHeaderName.mpnsClass { return true }
    // MPNS accepts any `X-` header; those of proxies and of Azure's clients are not meant for it.
    return format == .native(.mpns) && name.hasPrefix("x-") && !name.hasPrefix("x-ms-")
      && !name.hasPrefix("x-apns-") && !name.hasPrefix("x-forwarded-")
  }
}

extension IdempotencyClaim {
  /// Maximum length of a key, in characters.
  static let maxKeyLength = 255

  /// The claim of a request with the header `Idempotency-Key`; `nil` without.
  ///
  /// The fingerprint is of the parsed request, so a repeat may spell its headers differently.
  ///
  /// - Parameter kind: Distinguishes equal bodies that were posted to different resources.
  /// - Throws: ``HubFailure`` with 400 for a key that is empty, too long or not printable ASCII.
  init?(
    headers: SendHeaders, kind: String, submission: Submission, expiresAt: Date
  ) throws {
    guard let header = headers[SendHeaderName.idempotencyKey] else { return nil }
    let key = header.trimmingBlanks
    guard (1...Self.maxKeyLength).contains(key.utf8.count),
      key.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
    else {
      throw HubFailure(
        status: 400,
        message: "The Idempotency-Key must be 1 to \(Self.maxKeyLength) printable ASCII characters")
    }
    var bytes: [UInt8] = []
    func append(_ part: some Collection<UInt8>) {
      bytes += Array("\(part.count):".utf8)
      bytes += part
    }
    func append(_ part: String?) { append(Array((part.map { "+" + $0 } ?? "-").utf8)) }
    let request = submission.record.request
    append(kind)
    switch request.format {
    case .template: append(nil)
    case .native(let platform): append(platform.rawValue)
    }
    append(request.body)
    append(request.tags)
    for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
      append(name)
      append(value)
    }
    append(request.expiry.map(String.init))
    append((submission.record.scheduledFor?.timeIntervalSince1970).map { "\($0)" })
    for target in submission.targets { append(target.handle) }
    self.init(key: key, fingerprint: digest(of: bytes), expiresAt: expiresAt)
  }
}
