import Foundation
import HubServer

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
  /// The most resident memory it had, in megabytes (10⁶ bytes).
  var peakMB: Double

  static func current() -> ProcessUsage {
    var usage = rusage()
    getrusage(0, &usage)  // RUSAGE_SELF: a macro, an enum or an Int32, by platform
    let seconds = Double(usage.ru_utime.tv_sec) + Double(usage.ru_stime.tv_sec)
    let micros = Double(usage.ru_utime.tv_usec) + Double(usage.ru_stime.tv_usec)
    #if canImport(Darwin)
      let peak = Double(usage.ru_maxrss) / 1e6  // bytes
    #else
      // Not `ru_maxrss`: that begins with what the parent had when it started this process.
      let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
      let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
      let kibibytes = line?.split(separator: " ").lazy.compactMap { Double($0) }.first
      let peak = (kibibytes ?? 0) * 1024 / 1e6
    #endif
    return ProcessUsage(cpuSeconds: seconds + micros * 1e-6, peakMB: peak)
  }

  /// The memory that is resident now, in megabytes; 0 where the system does not say.
  static var residentMB: Double { Double(ProcessMemory.resident ?? 0) / 1e6 }
}
