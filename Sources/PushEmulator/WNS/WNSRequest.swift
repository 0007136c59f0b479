import HTTP2
import Wire

/// A request to WNS or to its token services (docs/protocol/push-services/wns.md, sections 2 and
/// 3).
struct WNSRequest: Sendable {
  enum Target: Sendable, Equatable {
    case liveToken
    case entraToken(tenant: String)
    /// The text after `?token=`; empty when there is none.
    case channel(String)
  }

  static let livePath = "/accesstoken.srf"

  static func entraPath(tenant: String) -> String { "/\(tenant)/oauth2/v2.0/token" }

  let plain: PlainRequest
  let target: Target

  init(_ request: HTTP2ServerRequest) {
    plain = PlainRequest(request)
    let parts = plain.path.split(separator: "/", omittingEmptySubsequences: false)
    let host = request.publicHost?.name
    func isAt(_ name: String) -> Bool { host == nil || host == name }
    if plain.path == Self.livePath, isAt("login.live.com") {
      target = .liveToken
    } else if parts.count == 5, parts[2...].elementsEqual(["oauth2", "v2.0", "token"]),
      isAt("login.microsoftonline.com")
    {
      target = .entraToken(tenant: String(parts[1]))
    } else {
      let items = plain.query?.split(separator: "&") ?? []
      let token = items.first { $0.hasPrefix("token=") }?.dropFirst(6)
      let isChannel = plain.path == "/" && isAt(PublicHost.channels)
      target = .channel(isChannel ? token.map(String.init) ?? "" : "")
    }
  }

  /// A notification's kind.
  enum Kind: String, CaseIterable, Sendable {
    case toast, tile, badge, raw

    /// The number of its shelf.
    var shelf: UInt8 {
      switch self {
      case .toast: 0
      case .tile: 1
      case .badge: 2
      case .raw: 3
      }
    }

    /// The default `X-WNS-PRIORITY`.
    var priority: Int {
      switch self {
      case .toast: 1
      case .tile, .badge: 2
      case .raw: 3
      }
    }

    var contentType: String { self == .raw ? "application/octet-stream" : "text/xml" }
  }

  /// The values of the `X-WNS-*` fields, if all of them are valid.
  struct Fields: Sendable {
    let kind: Kind
    let isCached: Bool
    /// In seconds.
    let ttl: Int64?
    let tag: String?
    let group: String?
    let priority: Int
  }

  /// Whether the sender asks for the device's connection status.
  var wantsStatus: Bool { plain["x-wns-requestforstatus"]?.lowercased() == "true" }

  /// Reads the fields.
  func fields() throws(WNSReply) -> Fields {
    guard let type = plain["x-wns-type"]?.lowercased() else {
      throw .init(400, "X-WNS-Type is missing")
    }
    guard type.hasPrefix("wns/"), let kind = Kind(rawValue: String(type.dropFirst(4))) else {
      throw .init(400, "X-WNS-Type is not one of wns/toast, wns/tile, wns/badge, wns/raw")
    }
    guard plain.mediaType == kind.contentType else {
      throw .init(400, "Content-Type must be \(kind.contentType) for \(type)")
    }
    for name in ["x-wns-suppresspopup", "x-wns-match"] where plain[name] != nil {
      throw .init(400, "\(name) is for phones only")
    }
    let isCached = try word("x-wns-cache-policy", ["cache": true, "no-cache": false])
    _ = try word("x-wns-requestforstatus", ["true": true, "false": false])
    let ttl = try number("x-wns-ttl", in: 1...Int64(Int32.max))
    let priority = try number("x-wns-priority", in: 1...4)
    let tag = try mark("x-wns-tag")
    let group = try mark("x-wns-group")
    if group != nil, kind != .toast { throw .init(400, "X-WNS-Group is for toasts only") }
    return Fields(
      kind: kind, isCached: isCached ?? (kind != .raw), ttl: ttl, tag: tag, group: group,
      priority: priority.map { Int($0) } ?? kind.priority)
  }

  private func word(_ name: String, _ words: [String: Bool]) throws(WNSReply) -> Bool? {
    guard let text = plain[name]?.lowercased() else { return nil }
    guard let value = words[text] else {
      throw WNSReply(400, "\(name) must be \(words.keys.sorted().joined(separator: " or "))")
    }
    return value
  }

  private func number(_ name: String, in range: ClosedRange<Int64>) throws(WNSReply) -> Int64? {
    guard let text = plain[name] else { return nil }
    guard let number = DecimalText.read(text), range.contains(number) else {
      throw WNSReply(400, "\(name) must be a whole number of \(range.lowerBound) or more")
    }
    return number
  }

  private func mark(_ name: String) throws(WNSReply) -> String? {
    guard let text = plain[name] else { return nil }
    guard text.utf8.allSatisfy({ $0.isLetter || $0.isDigit }), (1...16).contains(text.utf8.count)
    else {
      throw WNSReply(400, "\(name) must be 1 to 16 letters and digits")
    }
    return text
  }
}

/// The name of a document's outermost element; `nil` when it is not well-formed XML.
func rootElement(of document: [UInt8]) -> String? {
  guard String(validating: document, as: UTF8.self) != nil else { return nil }
  return document.withUnsafeBufferPointer { bytes in
    var scanner = XMLScanner(bytes, depthLimit: 64)
    var root: String?
    do throws(SyntaxFault) {
      while true {
        switch try scanner.next() {
        case .startTag(let name): root = root ?? String(decoding: bytes[name], as: UTF8.self)
        case .end: return root
        default: break
        }
      }
    } catch {
      return nil
    }
  }
}
