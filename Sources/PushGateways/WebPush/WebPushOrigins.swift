import Foundation
import HTTP2
import HTTPClient
import HubCore
import Synchronization

/// The links to the origins of subscriptions, limited in number: beyond the limit the least
/// recently used is released, and closes when the last push on it has a reply.
final class WebPushOrigins: Sendable {
  private struct Entry {
    let link: OriginLink
    var usedAt: UInt64
  }

  private struct State {
    var entries: [Origin: Entry] = [:]
    var uses: UInt64 = 0
  }

  let hosts: WebPushHosts
  private let supplies: GatewaySupplies
  private var configuration: PushGatewaysConfiguration { supplies.configuration }
  private let clock: HubClock
  private let state = Mutex(State())

  init(supplies: GatewaySupplies) {
    self.supplies = supplies
    clock = supplies.clock
    hosts = WebPushHosts(
      supplies.configuration.allowedHosts, reach: supplies.configuration.webPush.reach)
  }

  /// Number of links.
  var count: Int { state.withLock { $0.entries.count } }

  /// The load of the links to all origins.
  var load: GatewayLoad {
    get async {
      let links = state.withLock { $0.entries.values.map(\.link) }
      var sum = GatewayLoad()
      for link in links { sum = sum + (await link.load) }
      return sum
    }
  }

  func link(to origin: Origin, _ admission: WebPushHosts.Admission) -> OriginLink {
    state.withLock { state in
      state.uses += 1
      if let link = state.entries[origin]?.link {
        state.entries[origin]?.usedAt = state.uses
        return link
      }
      if state.entries.count >= max(1, configuration.webPush.maxOrigins),
        let oldest = state.entries.min(by: { $0.value.usedAt < $1.value.usedAt })
      {
        state.entries[oldest.key] = nil
      }
      let link = make(origin, admission)
      state.entries[origin] = Entry(link: link, usedAt: state.uses)
      return link
    }
  }

  private func make(_ origin: Origin, _ admission: WebPushHosts.Admission) -> OriginLink {
    let connections = configuration.webPush.connections
    var connection = connections.connection(
      to: origin.host, port: origin.port, extraAnchorsPEM: configuration.extraAnchorsPEM)
    if admission == .publicOnly { connection.requirePublicAddress() }
    return OriginLink(
      origin, poolNumber: supplies.poolNumbers.next(), connect: supplies.connect(connection),
      configuration: connections,
      session: supplies.sessions.session(isPublicOnly: admission == .publicOnly), clock: clock,
      random: supplies.random)
  }

  /// Closes all connections now.
  func closeAll() async {
    let links = state.withLock { state in
      defer { state.entries = [:] }
      return state.entries.values.map(\.link)
    }
    for link in links { await link.close() }
  }
}

/// The parts of a subscription's endpoint. It comes from an untrusted client: exactly what is
/// parsed here is connected to, and anything but a plain https URL is refused.
struct WebPushEndpoint {
  let origin: Origin
  /// The path with the query, verbatim.
  let path: ArraySlice<UInt8>

  private static let scheme = Array("https://".utf8)

  /// - Parameter known: Origins seen before; a slice of them is quicker than making another.
  init?(_ url: ArraySlice<UInt8>, known: [Origin] = []) {
    guard url.count <= 2048, url.starts(with: Self.scheme, by: { Self.lowered($0) == $1 }),
      url.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }),
      !url.contains(UInt8(ascii: "#"))
    else { return nil }
    let rest = url.dropFirst(Self.scheme.count)
    guard
      let slash = rest.firstIndex(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }),
      rest[slash] == UInt8(ascii: "/"), !HTTPAddress.hasDotSegment(rest[slash...]),
      let (host, port) = Self.authority(rest[..<slash])
    else { return nil }
    let match = known.last { $0.port == port && $0.host.utf8.elementsEqual(host) }
    origin = match ?? Origin(host: String(decoding: host, as: UTF8.self), port: port)
    path = rest[slash...]
  }

  private static func authority(_ bytes: ArraySlice<UInt8>) -> (host: [UInt8], port: UInt16)? {
    var host = bytes[...]
    var port = bytes[bytes.endIndex...]
    if bytes.first == UInt8(ascii: "[") {
      guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
      host = bytes[(bytes.startIndex + 1)..<end]
      port = bytes[(end + 1)...]
      let text = String(decoding: host, as: UTF8.self)
      guard text.contains(":"), IPAddress(text) != nil else { return nil }
    } else {
      if let colon = bytes.firstIndex(of: UInt8(ascii: ":")) {
        host = bytes[..<colon]
        port = bytes[colon...]
      }
      guard !host.isEmpty, host.count <= 253, host.allSatisfy(isNameByte) else { return nil }
    }
    guard !port.isEmpty else { return (host.map(lowered), 443) }
    guard port.first == UInt8(ascii: ":"),
      port.dropFirst().allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let number = UInt16(String(decoding: port.dropFirst(), as: UTF8.self)), number > 0
    else { return nil }
    return (host.map(lowered), number)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch lowered(byte) {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static func lowered(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
  }
}

/// The hosts that subscriptions may name (docs/protocol/push-services/web-push.md, section 1):
/// those of the browsers' vendors or any public ones, and those the operator names.
struct WebPushHosts: Sendable {
  enum Admission: Equatable, Sendable {
    /// Only at a public address, and the usual port.
    case publicOnly
    /// At any address, because the operator has named it.
    case anywhere
  }

  /// A name that begins with a dot stands for all its subdomains.
  static let vendors = [
    "updates.push.services.mozilla.com", "fcm.googleapis.com", "web.push.apple.com",
    ".notify.windows.com",
  ]

  /// The paths of push services on Google's host; subscriptions must not name any other.
  private static let googlePaths = ["/fcm/send/", "/wp/"]

  private let named: [String]
  private let reach: WebPushReach

  /// - Parameter named: ``PushGatewaysConfiguration/allowedHosts``.
  init(_ named: [String], reach: WebPushReach = .vendors) {
    self.named = named.map { $0.lowercased() }
    self.reach = reach
  }

  /// - Returns: `nil` for a host that is not allowed.
  func admission(of origin: Origin) -> Admission? {
    if HTTPAddress.isHost(origin.host, in: named) { return .anywhere }
    guard origin.port == 443 else { return nil }
    if HTTPAddress.isHost(origin.host, in: Self.vendors) { return .publicOnly }
    // With a dot at its end, a vendor's name would evade the rule about paths.
    return reach == .anyPublic && !origin.host.hasSuffix(".") ? .publicOnly : nil
  }

  /// Whether a pause that this origin asks for is one for all pushes. A server that a person has
  /// chosen must not hold up what others get.
  func speaksForAll(_ origin: Origin) -> Bool {
    HTTPAddress.isHost(origin.host, in: named) || HTTPAddress.isHost(origin.host, in: Self.vendors)
  }

  /// The reason for the refusal of a host, with the settings that can allow it.
  var refusal: String {
    PushResult.refusedHere + "the subscription's host is not allowed "
      + (reach == .vendors
        ? "(settings webPushHosts and channelHosts)"
        : "(setting webPushHosts allows port 443 only; channelHosts allows others)")
  }

  /// Whether a push may go to this path of an origin that is allowed.
  func allows(_ path: ArraySlice<UInt8>, of origin: Origin) -> Bool {
    guard origin.host == "fcm.googleapis.com" else { return true }
    return Self.googlePaths.contains { path.starts(with: $0.utf8) }
  }
}
