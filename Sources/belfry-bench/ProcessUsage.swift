#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// What this process has used so far.
struct ProcessUsage {
  /// User and system time of all threads, in seconds.
  var cpuSeconds: Double
  /// The most resident memory it had, in MiB.
  var peakMiB: Double

  static func current() -> ProcessUsage {
    var usage = rusage()
    getrusage(0, &usage)  // RUSAGE_SELF: a macro, an enum or an Int32, by platform
    let seconds = Double(usage.ru_utime.tv_sec) + Double(usage.ru_stime.tv_sec)
    let micros = Double(usage.ru_utime.tv_usec) + Double(usage.ru_stime.tv_usec)
    #if canImport(Darwin)
      let peak = Double(usage.ru_maxrss) / 1_048_576  // bytes
    #else
      let peak = Double(usage.ru_maxrss) / 1024  // KiB
    #endif
    return ProcessUsage(cpuSeconds: seconds + micros * 1e-6, peakMiB: peak)
  }
}
