import Cryptography
import Foundation
import HTTPServer
import HubCore
import HubServer
import HubStorage
import NotificationHubs

/// The observers of a running hub.
extension HubRuntime.Options {
  func observer(
    _ service: HubService, _ health: HubHealth, _ shared: PostgresHubStore?
  ) -> HubObserver {
    var nodes: (@Sendable () async throws -> [MetricsPage.Node])?
    if let shared {
      nodes = {
        try await shared.nodes().map {
          .init(id: $0.id, name: $0.name, address: $0.address, silence: $0.silence)
        }
      }
    }
    return HubObserver(
      log: log, health: health,
      metrics: MetricsPage(
        service: service, health: health, log: log, version: BelfryVersion.current, nodes: nodes),
      readers: opensMetrics ? .everybody : metricsToken.map { .bearer($0) } ?? .nobodyElse)
  }

  /// The background tasks of a hub.
  func keeping(
    _ opened: OpenedStore, _ health: HubHealth, _ jobs: JobRunner?
  ) -> [Task<Void, Never>] {
    [
      Task {
        await StoreMaintenance(
          store: opened.store, clock: opened.store.clock, retention: retention,
          report: log.lines(.warning, "store.trouble")
        ).run()
      },
      Task { await health.credentials?.run(log: log) },
      Task { await health.watchWork(log: log) },
    ] + [Task { opened.shared == nil ? await noteKeys(opened.keys) : await jobs?.adopt() }]
  }

  /// Loads another master key as soon as it is in its file, and records the ids of the keys here:
  /// nothing is sealed under a key that the server does not have. (Nodes report theirs to the
  /// database with their heartbeat.)
  private func noteKeys(_ keys: MasterKeyRing) async {
    var fault: String?
    data.servedKeys = keys.ids
    while !Task.isCancelled {
      var next: String?
      do { try keys.readAgain() } catch { next = error.message }
      if next != fault, let next { log(.error, "keys.unreadable", next) }
      fault = next
      if data.servedKeys != keys.ids {
        data.servedKeys = keys.ids
        log(.info, "keys.read", "master keys: " + keys.ids.joined(separator: ", "))
      }
      try? await Task.sleep(for: .seconds(2))
    }
  }

  /// A listener only for `/metrics`, so that a proxy in front of the hub cannot expose them to
  /// everyone.
  func metricsListener(_ page: MetricsPage) throws -> HTTPListener? {
    guard let metricsPort else { return nil }
    var configuration = HTTPConfiguration()
    configuration.host = metricsAddress
    configuration.port = metricsPort
    configuration.maxBodyBytes = 1024
    configuration.maxConnections = 64
    do {
      return try HTTPListener(
        configuration, handler: MetricsHandler(page: page, token: metricsToken))
    } catch {
      throw CommandFailure("metrics: \(error.description)", exitCode: .unreachable)
    }
  }
}

extension HubLog {
  /// Logs an event of the delivery engine.
  func callAsFunction(_ event: DispatchEvent) {
    switch event {
    case .finished(let hub, let id, let state, let counts, let seconds):
      var fields: [(String, LogValue)] = [
        ("hubNumber", .number(Int(hub))), ("notification", .text(id.rawValue)),
        ("state", .text(state.rawValue)), ("seconds", .decimal(seconds)),
        ("devices", .number(counts.values.reduce(0, +))),
      ]
      for (outcome, count) in counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
        fields.append((outcome.name, .number(count)))
      }
      self(.info, "send.finished", "", fields)
    case .credentialPaused: self(.warning, "credential.paused", event.description)
    case .serviceDown: self(.warning, "service.down", event.description)
    case .serviceBack: self(.info, "service.back", event.description)
    case .unreadableTarget: self(.error, "registration.unreadable", event.description)
    case .unreadableNotification: self(.error, "notification.unreadable", event.description)
    case .deadHandlesSuspicious: self(.error, "handles.alarm", event.description)
    case .handlesRestored: self(.warning, "handles.restored", event.description)
    case .leaseLost: self(.warning, "lease.lost", event.description)
    case .storeTrouble: self(.error, "store.trouble", event.description)
    }
  }
}
