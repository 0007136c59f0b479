import CCurl
import Foundation
import Synchronization

/// State shared by callers and the session's thread: the mailbox, and the means to wake the thread.
final class SessionCore: Sendable {
  /// The thread's next work.
  struct Mail {
    var batches: [CallBatch] = []
    var cancelled: [UInt64] = []
    var isClosed = false
  }

  /// libcurl's multi handle; only waking it is allowed outside the session's thread.
  struct Wheel: @unchecked Sendable {  // used under the mailbox's lock, while the thread lives
    let multi: UnsafeMutableRawPointer
  }

  private struct State {
    var mail = Mail()
    /// The thread's handle from its start to its end.
    var wheel: Wheel?
    var lastBatch: UInt64 = 0
    /// Batches with an id that are not submitted yet: whether they are already cancelled.
    var announced: [UInt64: Bool] = [:]
  }

  let configuration: HTTPSessionConfiguration
  private let state = Mutex(State())

  /// Initializes libcurl, which requires this once before everything else.
  private static let isReady = belfry_curl_global_init() == CURLE_OK

  init(_ configuration: HTTPSessionConfiguration) { self.configuration = configuration }

  func nextBatchID() -> UInt64 {
    state.withLock { state in
      state.lastBatch += 1
      state.announced[state.lastBatch] = false
      return state.lastBatch
    }
  }

  func submit(_ batch: CallBatch) {
    let refusal: HTTPFailure? = state.withLock { state in
      if state.announced.removeValue(forKey: batch.id) == true {
        return HTTPFailure(.cancelled, "cancelled")
      }
      guard !state.mail.isClosed, start(&state) else {
        return HTTPFailure(.closed, "the session is closed")
      }
      state.mail.batches.append(batch)
      wake(state)
      return nil
    }
    if let refusal { batch.answerUnbegun(refusal) }
  }

  func cancel(_ batch: UInt64) {
    state.withLock { state in
      if state.announced[batch] != nil {
        state.announced[batch] = true
      } else {
        state.mail.cancelled.append(batch)
        wake(state)
      }
    }
  }

  func close() {
    state.withLock { state in
      state.mail.isClosed = true
      wake(state)
    }
  }

  /// Makes the thread read the configuration's clock again: for tests, which move it by hand.
  func lookAtClock() { state.withLock { wake($0) } }

  /// Starts the thread if it is not running; false when libcurl cannot.
  private func start(_ state: inout State) -> Bool {
    if state.wheel != nil { return true }
    guard Self.isReady, let multi = curl_multi_init() else { return false }
    let wheel = Wheel(multi: multi)
    state.wheel = wheel
    let thread = Thread { SessionLoop(self, wheel.multi).run() }
    thread.name = "http-client"
    thread.start()
    return true
  }

  private func wake(_ state: borrowing State) {
    if let wheel = state.wheel { curl_multi_wakeup(wheel.multi) }
  }

  /// For the thread: takes the new mail.
  func takeMail() -> Mail {
    state.withLock { state in
      defer { state.mail = Mail(isClosed: state.mail.isClosed) }
      return state.mail
    }
  }

  /// For the thread, once it has ended all calls of a closed session: it is not woken any more.
  func ended() -> Mail {
    state.withLock { state in
      state.wheel = nil
      defer { state.mail = Mail(isClosed: true) }
      return state.mail
    }
  }
}

/// The trust anchors of a session. Extra anchors replace libcurl's bundle, not its directory of
/// certificates; where it has no such directory, the system's bundle is added to them.
struct TrustAnchors {
  /// PEM; empty for libcurl's own choice.
  let pem: [UInt8]

  init(extraPEM: [UInt8]) {
    guard !extraPEM.isEmpty else {
      pem = []
      return
    }
    pem = Self.hasDirectory ? extraPEM : extraPEM + [UInt8(ascii: "\n")] + Self.systemBundle()
  }

  private static let hasDirectory: Bool = {
    guard let path = belfry_curl_default_directory() else { return false }
    let found = try? FileManager.default.contentsOfDirectory(atPath: String(cString: path))
    return found?.isEmpty == false
  }()

  /// The usual locations of systems' bundles, tried after libcurl's own default.
  private static let usualPlaces = [
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
    "/opt/homebrew/etc/ca-certificates/cert.pem", "/usr/local/etc/ca-certificates/cert.pem",
  ]

  private static func systemBundle() -> [UInt8] {
    let own = belfry_curl_default_bundle().map { [String(cString: $0)] } ?? []
    for path in own + usualPlaces {
      if let data = FileManager.default.contents(atPath: path), !data.isEmpty { return Array(data) }
    }
    return []
  }
}
