import Foundation
import HTTPClient
import HubCore
import NotificationHubs

/// A notification in the form that WNS accepts (docs/protocol/push-services/wns.md, section 3).
struct WNSBody: Sendable {
  /// All headers except `Authorization`.
  let headers: [(name: String, value: String)]
  let body: [UInt8]

  /// Size limit of a body as transmitted.
  private static let limit = PushPlatform.wns.traits.payloadLimit ?? .max

  private static let typeName = "x-wns-type"
  private static let ttlName = "x-wns-ttl"
  private static let declaration = Array(#"<?xml version="1.0" encoding="utf-8"?>"#.utf8)

  /// The kinds of notification, by the value of `X-WNS-Type`.
  enum Kind: String, CaseIterable, Sendable {
    case toast
    case tile
    case badge
    case raw

    var contentType: String { self == .raw ? "application/octet-stream" : "text/xml" }
    var word: String { "wns/" + rawValue }
  }

  /// - Parameters:
  ///   - body: Its headers `x-wns-…` are passed on unchanged; the type and the time to live are
  ///     added.
  ///   - isEntra: Whether the credential allows toast and raw only.
  init(_ body: PushBody, isEntra: Bool, now: Int64) throws(PushRefusal) {
    var given = body.headers.filter { $0.key.hasPrefix("x-wns-") }
    let kind = try Self.kind(of: body, word: given[Self.typeName])
    if isEntra, kind == .tile || kind == .badge {
      throw PushRefusal.badFormat("an Entra credential sends toast and raw only, no \(kind)")
    }
    try Self.check(given)
    given[Self.typeName] = kind.word
    given["x-wns-requestforstatus"] = "true"
    if given[Self.ttlName] == nil, let expiry = body.expiry {
      given[Self.ttlName] = String(max(1, expiry - now))
    }
    headers =
      [("Content-Type", kind.contentType)]
      + given.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
    self.body = kind == .raw ? body.bytes : Self.withDeclaration(body.bytes)
    guard self.body.count <= Self.limit else {
      throw PushRefusal.tooLarge(self.body.count, limit: Self.limit)
    }
    guard !self.body.isEmpty else { throw PushRefusal.badFormat("the payload is empty") }
  }

  private static func kind(of body: PushBody, word: String?) throws(PushRefusal) -> Kind {
    let root = XMLRoot(body.bytes)
    guard let word else {
      if let root, let kind = Kind(rawValue: root.name), kind != .raw { return kind }
      if body.headers["content-type"]?.lowercased().hasPrefix("application/octet-stream") == true {
        return .raw
      }
      throw PushRefusal.badFormat(
        "without X-WNS-Type the payload must be XML with the root toast, tile or badge")
    }
    guard let kind = Kind.allCases.first(where: { $0.word == word.lowercased() }) else {
      throw PushRefusal.badFormat("X-WNS-Type is none of wns/toast, tile, badge, raw")
    }
    guard kind == .raw || root?.name == kind.rawValue else {
      throw PushRefusal.badFormat("the payload is not XML with the root \(kind)")
    }
    return kind
  }

  /// Refuses headers that WNS would refuse, so that it is not asked for each device.
  private static func check(_ headers: [String: String]) throws(PushRefusal) {
    let rules: [(name: String, isRight: (String) -> Bool)] = [
      ("x-wns-cache-policy", { ["cache", "no-cache"].contains($0.lowercased()) }),
      (ttlName, { Int64($0).map { $0 > 0 } ?? false }),
      ("x-wns-tag", isLabel), ("x-wns-group", isLabel),
      ("x-wns-priority", { ["1", "2", "3", "4"].contains($0) }),
    ]
    for (name, isRight) in rules {
      if let value = headers[name], !isRight(value) {
        throw PushRefusal.badFormat("the header \(name) has a value that WNS does not take")
      }
    }
  }

  private static func isLabel(_ text: String) -> Bool {
    (1...16).contains(text.count) && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
  }

  /// Declares the text as UTF-8: .NET's serializer declares UTF-16 and sends UTF-8.
  private static func withDeclaration(_ bytes: [UInt8]) -> [UInt8] {
    guard let root = XMLRoot(bytes) else { return bytes }
    if let declared = root.declaration {
      let text = String(decoding: bytes[declared], as: UTF8.self).lowercased()
      guard text.contains("utf-16") else { return bytes }
      return Array(bytes[..<declared.lowerBound]) + declaration + bytes[declared.upperBound...]
    }
    // Best effort: a body that barely fits is sent without a declaration.
    return bytes.count + declaration.count <= limit ? declaration + bytes : bytes
  }
}

/// The complete table of WNS replies (docs/protocol/push-services/wns.md, section 4), and the
/// lookup of a row.
enum WNSReply {
  static let received = ReplyRule("200", "X-WNS-Status: received", .none, .keep, .success)
  static let dropped = ReplyRule("200", "X-WNS-Status: dropped", .never, .keep, .dropped)
  static let disconnected = ReplyRule(
    "200", "dropped + X-WNS-DeviceConnectionStatus: disconnected", .never, .keep,
    .channelDisconnected)
  static let channelThrottled = ReplyRule(
    "200", "X-WNS-Status: channelthrottled", .backoff, .keep, .channelThrottled)
  static let throttled = ReplyRule("406", "", .backoff, .keep, .throttled)
  static let otherClientError = ReplyRule("4xx", "(other)", .never, .keep, .unknownError)
  static let otherServerError = ReplyRule("5xx", "(other)", .backoff, .keep, .pnsServerError)

  private static let byStatus: [ReplyRule] = [
    ReplyRule("400", "", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("401", "", .refreshOnce, .keep, .invalidToken),
    ReplyRule("403", "", .never, .keep, .wrongToken),
    ReplyRule("404", "", .never, .remove, .badChannel),
    ReplyRule("405", "", .fix, .keep, .pnsInterfaceError),
    throttled,
    ReplyRule("410", "", .never, .remove, .expiredChannel),
    ReplyRule("413", "", .fix, .keep, .invalidNotificationSize),
    ReplyRule("500", "", .backoff, .keep, .pnsServerError),
    ReplyRule("503", "", .backoff, .keep, .pnsUnavailable),
  ]

  /// All rows of the channel's replies; those of the token service are in ``AccessTokenFailure``.
  static let all: [ReplyRule] =
    [received, dropped, disconnected, channelThrottled] + byStatus + [
      otherClientError, otherServerError, .unreachable,
    ]

  /// The pause after 406 without `Retry-After`: a minute (docs/protocol/push-services/wns.md,
  /// section 4).
  static let throttlePause: Int32 = 60

  /// - Parameter now: In seconds since 1970.
  static func verdict(_ reply: HTTPReply, now: Int64) -> PushVerdict {
    let rule = rule(reply)
    var verdict = PushVerdict(rule, status: reply.status)
    verdict.retryAfter = reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) }
    if rule == throttled, verdict.retryAfter == nil { verdict.retryAfter = throttlePause }
    if rule == channelThrottled, let text = reply["X-WNS-CONTINUE-AFTER"] {
      verdict.retryAfter = RetryAfter.seconds(text, now: now)
    }
    if rule.outcome != .success {
      let said = reply["X-WNS-Error-Description"].flatMap { PushVerdict.shown($0) }
      let state = reply.status == 200 ? status(reply).flatMap { PushVerdict.shown($0) } : nil
      verdict.reason = said ?? state ?? "status \(reply.status)"
    }
    return verdict
  }

  private static func rule(_ reply: HTTPReply) -> ReplyRule {
    switch reply.status {
    case 200:
      switch status(reply)?.lowercased() {
      case "dropped": isDisconnected(reply) ? disconnected : dropped
      case "channelthrottled": channelThrottled
      // Without a status, or with a word newer than this build, 200 is taken literally.
      default: received
      }
    case 400...499: byStatus.first { $0.status == "\(reply.status)" } ?? otherClientError
    case 500...599: byStatus.first { $0.status == "\(reply.status)" } ?? otherServerError
    default: .notUnderstood
    }
  }

  private static func status(_ reply: HTTPReply) -> String? {
    reply["X-WNS-Status"] ?? reply["X-WNS-NotificationStatus"]
  }

  private static func isDisconnected(_ reply: HTTPReply) -> Bool {
    ["disconnected", "tempdisconnected"].contains(
      reply["X-WNS-DeviceConnectionStatus"]?.lowercased() ?? "")
  }
}
