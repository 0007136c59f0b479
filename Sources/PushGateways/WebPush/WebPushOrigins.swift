import Foundation
import HTTP2
import HTTPClient
import HubCore
import Synchronization

/// The ways to the origins that subscriptions point at, a bounded number: beyond it the one not used
/// for longest is let go, and ends when the last push on it is answered.
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
  private let configuration: PushGatewaysConfiguration
  private let clock: HubClock
  private let sessions: GatewaySessions
  private let state = Mutex(State())

  init(_ configuration: PushGatewaysConfiguration, sessions: GatewaySessions, clock: HubClock) {
    self.configuration = configuration
    self.sessions = sessions
    self.clock = clock
    hosts = WebPushHosts(configuration.allowedHosts)
  }

  /// How many ways are held.
  var count: Int { state.withLock { $0.entries.count } }

  /// What the ways to all origins carry.
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
      origin, connection: connection, configuration: connections,
      session: sessions.session(isPublicOnly: admission == .publicOnly), clock: clock)
  }

  /// Ends all connections now.
  func closeAll() async {
    let links = state.withLock { state in
      defer { state.entries = [:] }
      return state.entries.values.map(\.link)
    }
    for link in links { await link.close() }
  }
}
