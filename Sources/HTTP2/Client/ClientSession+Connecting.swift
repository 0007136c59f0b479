#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

extension ClientSession {
  /// Performs name resolution, TCP and TLS, within the connect timeout.
  func connect() throws(HTTP2ConnectionError) {
    connectDeadline = now + configuration.connectTimeout.nanoseconds
    let context: TLSContext
    do throws(TLSMaterialError) {
      context = try TLSContext.client(
        extraAnchorsPEM: configuration.extraAnchorsPEM,
        certificatePEM: configuration.clientCertificatePEM, keyPEM: configuration.clientKeyPEM)
    } catch {
      throw HTTP2ConnectionError(.configuration, "cannot connect to \(endpoint): \(error.reason)")
    }
    let addresses: [Socket.Address]
    switch Socket.addresses(of: configuration.host, port: configuration.port, passive: false) {
    case .success(let found):
      let allowed = found.filter { configuration.allowsAddress?($0.host) ?? true }
      guard !allowed.isEmpty else {
        throw HTTP2ConnectionError(
          .refusedAddress, "\(configuration.host) has no address that may be connected to")
      }
      addresses = Self.spread(allowed)
    case .failure(let failure):
      throw HTTP2ConnectionError(.lookup, "cannot find \(configuration.host): \(failure.reason)")
    }
    try connect(toFirstOf: addresses)
    Socket.setNoDelay(descriptor)
    guard let channel = TLSChannel(context, descriptor: descriptor),
      channel.expect(serverName: configuration.serverName ?? configuration.host)
    else {
      throw HTTP2ConnectionError(
        .configuration, "cannot connect to \(endpoint): the server name is not usable")
    }
    self.channel = channel
    try handshake(channel)
  }

  /// Shuffles the addresses of the preferred family, so that several connections to one name do not
  /// all reach the same server: the system undoes the shuffling of the name service by sorting.
  private static func spread(_ addresses: [Socket.Address]) -> [Socket.Address] {
    let preferred = addresses.prefix { $0.family == addresses[0].family }
    return preferred.shuffled() + addresses.dropFirst(preferred.count)
  }

  /// Tries the addresses in turn; each gets its share of the remaining time.
  private func connect(toFirstOf addresses: [Socket.Address]) throws(HTTP2ConnectionError) {
    var lastCode: Int32 = 0
    for (index, address) in addresses.enumerated() {
      guard let candidate = Socket.make(family: address.family) else {
        lastCode = errno
        continue
      }
      descriptor = candidate
      lastCode = Socket.connect(candidate, to: address)
      if lastCode == EINPROGRESS {
        now = configuration.monotonicClock()
        let left = connectDeadline > now ? connectDeadline - now : 0
        let deadline = now + left / UInt64(addresses.count - index)
        lastCode =
          try wait(for: Int16(POLLOUT), until: deadline)
          ? Socket.pendingError(candidate) : ETIMEDOUT
      }
      if lastCode == 0 { return }
      close(candidate)
      descriptor = -1
    }
    let kind: HTTP2ConnectionError.Kind = lastCode == ETIMEDOUT ? .connectTimedOut : .connect
    throw HTTP2ConnectionError(kind, "cannot reach \(endpoint): \(systemMessage(lastCode))")
  }

  private func handshake(_ channel: TLSChannel) throws(HTTP2ConnectionError) {
    while true {
      let result = channel.handshake()
      if result > 0 { break }
      guard result == 0 else { throw handshakeError(channel.failure) }
      let events = Int16(channel.wantsWrite ? POLLOUT : POLLIN)
      guard try wait(for: events, until: connectDeadline) else {
        throw HTTP2ConnectionError(
          .connectTimedOut, "\(endpoint) did not finish the TLS handshake in time")
      }
    }
    guard channel.speaksH2 else { throw withoutHTTP2 }
  }

  private var withoutHTTP2: HTTP2ConnectionError {
    HTTP2ConnectionError(
      .wrongProtocol, "the server at \(endpoint) does not speak HTTP/2 (no h2 in ALPN)")
  }

  private func handshakeError(_ failure: TLSChannel.Failure?) -> HTTP2ConnectionError {
    let reason = failure?.reason ?? "unknown"
    if failure?.isUntrusted == true {
      return HTTP2ConnectionError(.untrustedPeer, "cannot trust \(endpoint): \(reason)")
    }
    if let alert = failure?.alert {
      if TLSAlert.isAboutCertificate(alert) {
        return HTTP2ConnectionError(
          .tlsRejectedCertificate, "\(endpoint) refused the client certificate: \(reason)")
      }
      if alert == TLSAlert.noApplicationProtocol { return withoutHTTP2 }
    }
    if failure?.isEndOfStream == true {
      return HTTP2ConnectionError(.connect, "\(endpoint) ended the TLS handshake: \(reason)")
    }
    return HTTP2ConnectionError(.tls, "the TLS handshake with \(endpoint) failed: \(reason)")
  }

  /// Waits for the socket, while the owner may close the connection.
  ///
  /// - Returns: False when the deadline has passed.
  private func wait(for events: Int16, until deadline: UInt64) throws(HTTP2ConnectionError) -> Bool
  {
    while true {
      var descriptors = [
        pollfd(fd: descriptor, events: events, revents: 0),
        pollfd(fd: pipe.readEnd, events: Int16(POLLIN), revents: 0),
      ]
      now = configuration.monotonicClock()
      guard now < deadline else { return false }
      _ = poll(&descriptors, 2, pollTimeout(until: deadline, from: now))
      if descriptors[1].revents != 0 { pipe.drain() }
      if core.isClosing {
        throw HTTP2ConnectionError(.closed, "\(endpoint): closed by its owner")
      }
      if descriptors[0].revents != 0 { return true }
    }
  }

  /// Writes the preface and our SETTINGS.
  func begin() {
    sendPreface()
    now = configuration.monotonicClock()
    lastReceived = now
    lastProgress = now
  }
}

extension ClientSession {
  /// Handles every expired timeout.
  func watchClocks() throws(HTTP2ConnectionError) {
    if status.state == .connecting, now >= connectDeadline {
      throw HTTP2ConnectionError(.connectTimedOut, "\(endpoint) sent no SETTINGS in time")
    }
    let replyTimeout = configuration.replyTimeout.nanoseconds
    while streams.oldest >= 0 {
      let position = Int(streams.oldest)
      let openedAt = streams.slots[position].openedAt
      guard now >= openedAt + replyTimeout else { break }
      if lastAnswer < openedAt { status.isSilent = true }
      abandon(position, .timedOut)
    }
    if waitsForRoom, now >= lastProgress + configuration.roomTimeout.nanoseconds {
      status.isSilent = true
      failQueue(.refused)
    }
    for job in jobs where now >= job.pointee.deadline {
      job.pointee.deadline = .max
      job.pointee.failUnsent(.refused)
      queue.removeAll { $0 == job }
      settled.append(job)
    }
    try watchPeer()
    if let idleTimeout = configuration.idleTimeout, isIdle,
      now >= lastProgress + idleTimeout.nanoseconds
    {
      throw HTTP2ConnectionError(.idle, "\(endpoint): closed after the idle time")
    }
  }

  /// The time of the next timeout.
  func nextDeadline() -> UInt64? {
    var deadline =
      pingSentAt.map { $0 + configuration.pingTimeout.nanoseconds }
      ?? lastReceived + configuration.pingInterval.nanoseconds
    if status.state == .connecting { deadline = min(deadline, connectDeadline) }
    let replyTimeout = configuration.replyTimeout.nanoseconds
    if streams.oldest >= 0 {
      deadline = min(deadline, streams.slots[Int(streams.oldest)].openedAt + replyTimeout)
    }
    if waitsForRoom {
      deadline = min(deadline, lastProgress + configuration.roomTimeout.nanoseconds)
    }
    for job in jobs { deadline = min(deadline, job.pointee.deadline) }
    if let idleTimeout = configuration.idleTimeout, isIdle {
      deadline = min(deadline, lastProgress + idleTimeout.nanoseconds)
    }
    return deadline
  }

  /// Whether requests wait although none is in flight: the peer allows no stream.
  private var waitsForRoom: Bool {
    status.state == .ready && streams.count == 0 && !queue.isEmpty
  }

  private var isIdle: Bool {
    status.state == .ready && streams.count == 0 && queue.isEmpty
  }

  /// Checks with a PING whether a silent peer is alive, and gives up on one that does not reply.
  private func watchPeer() throws(HTTP2ConnectionError) {
    if let sent = pingSentAt {
      guard now < sent + configuration.pingTimeout.nanoseconds else {
        throw HTTP2ConnectionError(.pingTimedOut, "\(endpoint) does not answer a PING")
      }
    } else if now >= lastReceived + configuration.pingInterval.nanoseconds {
      sendPing()
      pingSentAt = now
    }
  }
}
