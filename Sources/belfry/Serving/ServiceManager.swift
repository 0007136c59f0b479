import Foundation
import HubCore

/// The service manager that started this process, such as systemd. It is notified of start, reload
/// and stop, and regularly that the process is alive. The protocol is one datagram of lines to the
/// socket in `NOTIFY_SOCKET`
/// (<https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html>).
struct ServiceManager: Sendable {
  /// The states to report.
  enum State: Sendable, Equatable {
    case ready
    case reloading
    case stopping
    /// The process responds.
    case alive
    /// The start continues, and may take this much longer.
    case starting(Duration)

    /// - Parameter monotonic: The system's monotonic clock, which distinguishes reloads.
    func text(monotonic: Duration) -> String {
      switch self {
      case .ready: "READY=1"
      case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(monotonic.microseconds)"
      case .stopping: "STOPPING=1"
      case .alive: "WATCHDOG=1"
      case .starting(let more): "EXTEND_TIMEOUT_USEC=\(more.microseconds)"
      }
    }
  }

  private let socketName: [UInt8]
  /// The interval at which the manager expects a sign of life; `nil` if it does not.
  let watchdog: Duration?

  /// - Returns: `nil` if no manager expects reports.
  init?(
    environment: [String: String], process: Int32 = ProcessInfo.processInfo.processIdentifier
  ) {
    guard let name = environment["NOTIFY_SOCKET"], let name = Self.address(name) else { return nil }
    socketName = name
    watchdog = Self.watchdog(environment, process)
  }

  /// The socket name in the kernel's format: `@` stands for the leading NUL of an abstract name.
  private static func address(_ name: String) -> [UInt8]? {
    let room = MemoryLayout.size(ofValue: sockaddr_un().sun_path)
    var bytes = Array(name.utf8)
    guard bytes.count > 1, bytes.count < room else { return nil }
    switch bytes[0] {
    case UInt8(ascii: "/"): return bytes
    case UInt8(ascii: "@"):
      bytes[0] = 0
      return bytes
    default: return nil
    }
  }

  /// The variables may be those of another process, which passed on its environment.
  private static func watchdog(_ environment: [String: String], _ process: Int32) -> Duration? {
    guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0
    else { return nil }
    if let wanted = environment["WATCHDOG_PID"], Int32(wanted) != process { return nil }
    return .microseconds(microseconds)
  }

  /// Sends one datagram. A failure is ignored, since the manager will notice by itself.
  func tell(_ state: State) {
    #if canImport(Darwin)
      let descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
    #else
      let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    #endif
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let start = MemoryLayout.size(ofValue: address) - MemoryLayout.size(ofValue: address.sun_path)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: socketName) }
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    let now = Duration.seconds(Int(time.tv_sec)) + .nanoseconds(Int(time.tv_nsec))
    let text = Array(state.text(monotonic: now).utf8)
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        // A manager that does not read must not block the server.
        sendto(
          descriptor, text, text.count, Int32(MSG_DONTWAIT), $0,
          socklen_t(start + socketName.count))
      }
    }
  }

  /// Reports a state repeatedly until the task is cancelled.
  /// - Parameter check: Returns once the state applies again; while it hangs, nothing is reported.
  func keepTelling(
    _ state: State, every interval: Duration, check: @escaping @Sendable () async -> Void = {}
  ) -> Task<Void, Never> {
    Task {
      while !Task.isCancelled {
        await check()
        tell(state)
        try? await Task.sleep(for: interval)
      }
    }
  }
}

extension ServiceManager {
  /// Reports that the process is alive, if the manager expects it, as long as the delivery engine
  /// responds. An unresponsive database or push service is no reason for a restart.
  func watch(_ runtime: HubRuntime) -> Task<Void, Never>? {
    watchdog.map { limit in
      keepTelling(.alive, every: limit / 3) { [dispatcher = runtime.service.dispatcher] in
        _ = await dispatcher.isIdle
      }
    }
  }
}

extension Duration {
  fileprivate var microseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
}
