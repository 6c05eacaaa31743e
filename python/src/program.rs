//! Programs in Python: ranks that are generators, which yield their calls of MPI.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pdes_replay::{CodeProgram, Data, Values};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

type Answer = PyResult<Py<PyAny>>;
type CallFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Exceptions of ranks that end a run, by rank.
pub(crate) type Exceptions = Arc<Mutex<BTreeMap<u32, PyErr>>>;

/// Returns the program in which each rank runs the generator that `function` returns for its `Mpi`, and where its exceptions are found.
pub(crate) fn program(name: &str, ranks: u32, function: Py<PyAny>) -> (CodeProgram, Exceptions) {
    let (function, exceptions) = (Arc::new(function), Exceptions::default());
    let found = Arc::clone(&exceptions);
    let program = CodeProgram::new(name, ranks, move |mpi| {
        let (function, exceptions) = (Arc::clone(&function), Arc::clone(&exceptions));
        async move {
            if let Err(exception) = run_rank(&mpi, &function).await {
                let why = exception.to_string();
                lock(&exceptions).insert(mpi.rank(), exception);
                mpi.abort(why).await;
            }
        }
    });
    (program, found)
}

/// Resumes the generator of a rank with the answer to each call that it yields, until it ends.
async fn run_rank(mpi: &pdes_replay::Mpi, function: &Py<PyAny>) -> PyResult<()> {
    let forgotten = Arc::default();
    let generator = Python::attach(|py| {
        let mpi = Mpi { mpi: mpi.clone(), forgotten: Arc::clone(&forgotten) };
        let generator = function.call1(py, (mpi,))?;
        match generator.bind(py).hasattr("send")? {
            true => Ok(generator),
            false => {
                let found = generator.bind(py).get_type().name()?.to_string();
                let expected =
                    "a generator: a rank is a function that yields its calls, as in `yield mpi.barrier()`";
                Err(PyTypeError::new_err(format!("found {found}, expected {expected}")))
            }
        }
    })?;
    let mut answer: Option<Py<PyAny>> = None;
    loop {
        let call = Python::attach(|py| {
            let yielded = generator.bind(py).call_method1("send", (answer.take(),));
            if let Some(name) = forgotten.get() {
                let message = format!("mpi.{name}() is never yielded: write `yield mpi.{name}(...)`");
                return Err(PyRuntimeError::new_err(message));
            }
            match yielded {
                Ok(yielded) => begin(&yielded).map(Some),
                Err(end) if end.is_instance_of::<PyStopIteration>(py) => Ok(None),
                Err(exception) => Err(exception),
            }
        })?;
        match call {
            Some(call) => answer = Some(call.await?),
            None => return Ok(()),
        }
    }
}

/// Returns the call that a rank has yielded.
fn begin(yielded: &Bound<'_, PyAny>) -> PyResult<CallFuture> {
    let Ok(call) = yielded.cast::<Call>() else {
        let message = format!("a rank yields {}, expected a call, such as mpi.barrier()", yielded.repr()?);
        return Err(PyTypeError::new_err(message));
    };
    let Call { name, future, .. } = call.get();
    let twice = || PyValueError::new_err(format!("mpi.{name}() is yielded twice: make another call"));
    lock(future).take().ok_or_else(twice)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call of MPI, which begins when its rank yields it.
#[pyclass(frozen, module = "pdes_replay._native")]
pub(crate) struct Call {
    name: &'static str,
    /// `None` once it has begun.
    future: Mutex<Option<CallFuture>>,
    /// Is told the name of the call if it never begins.
    forgotten: Arc<OnceLock<&'static str>>,
}

impl Drop for Call {
    fn drop(&mut self) {
        if lock(&self.future).is_some() {
            // The first one is reported.
            let _ = self.forgotten.set(self.name);
        }
    }
}

/// A request of a rank, to be waited for once.
#[pyclass(frozen, module = "pdes_replay._native")]
pub(crate) struct Request(Mutex<Option<pdes_replay::Request>>);

impl Request {
    fn take(&self) -> PyResult<pdes_replay::Request> {
        lock(&self.0).take().ok_or_else(|| PyValueError::new_err("the request is complete: wait for it once"))
    }

    fn put_back(&self, request: pdes_replay::Request) {
        *lock(&self.0) = Some(request);
    }
}

impl From<pdes_replay::Request> for Request {
    fn from(request: pdes_replay::Request) -> Self {
        Self(Mutex::new(Some(request)))
    }
}

/// A message that a rank has received, or that a probe has found; what is found only has no value yet.
#[pyclass(frozen, module = "pdes_replay._native")]
pub(crate) struct Message(pdes_replay::Message);

#[pymethods]
impl Message {
    /// The sender, a rank of the communicator.
    #[getter]
    fn source(&self) -> u32 {
        self.0.source
    }

    /// The tag.
    #[getter]
    fn tag(&self) -> u32 {
        self.0.tag
    }

    /// The size [B].
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.data.bytes()
    }

    /// The value that was sent; None if there is only a size.
    #[getter]
    fn value(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        value(py, &self.0.data)
    }

    fn __repr__(&self) -> String {
        format!("Message(source={}, tag={}, bytes={})", self.source(), self.tag(), self.bytes())
    }
}

/// Returns data of a size \[B\] and, unless that is None, with a value.
fn data(bytes: u64, value: Option<Py<PyAny>>) -> Data {
    value.map_or_else(|| bytes.into(), |value| Data::new(bytes, value))
}

fn value(py: Python<'_>, data: &Data) -> Option<Py<PyAny>> {
    data.value::<Py<PyAny>>().map(|value| value.clone_ref(py))
}

/// Returns the values of all ranks, None for one without a value.
fn values(values: &Values) -> Vec<Option<Py<PyAny>>> {
    Python::attach(|py| values.iter().map(|data| value(py, data)).collect())
}

/// A rank of a communicator, and its calls of MPI, which it yields.
#[pyclass(frozen, module = "pdes_replay._native")]
pub(crate) struct Mpi {
    mpi: pdes_replay::Mpi,
    forgotten: Arc<OnceLock<&'static str>>,
}

impl Mpi {
    /// Returns a call that ends with the result of a future.
    fn call<T>(&self, name: &'static str, future: impl Future<Output = T> + Send + 'static) -> Call
    where
        T: for<'py> IntoPyObject<'py>,
    {
        let future = async {
            let answer = future.await;
            Python::attach(|py| answer.into_py_any(py))
        };
        Call { name, future: Mutex::new(Some(Box::pin(future))), forgotten: Arc::clone(&self.forgotten) }
    }

    /// Returns a call without a result.
    fn plain_call(&self, name: &'static str, future: impl Future<Output = ()> + Send + 'static) -> Call {
        self.call(name, async {
            future.await;
            None::<u32>
        })
    }
}

#[pymethods]
impl Mpi {
    /// The rank in the communicator.
    #[getter]
    fn rank(&self) -> u32 {
        self.mpi.rank()
    }

    /// The number of ranks of the communicator.
    #[getter]
    fn size(&self) -> u32 {
        self.mpi.size()
    }

    /// The simulated time [s], that of the end of the last call.
    #[getter]
    fn time(&self) -> f64 {
        self.mpi.time().as_secs_f64()
    }

    /// Computes an amount of work [flop].
    fn compute(&self, flops: f64) -> Call {
        let mpi = self.mpi.clone();
        self.plain_call("compute", async move { mpi.compute(flops).await })
    }

    /// Sleeps for a time [s].
    fn sleep(&self, seconds: f64) -> Call {
        let mpi = self.mpi.clone();
        self.plain_call("sleep", async move { mpi.sleep(seconds).await })
    }

    /// Sends a message of `bytes`, with a value if the receiver is to get one: MPI_Send.
    #[pyo3(signature = (to, tag, bytes, value=None))]
    fn send(&self, to: u32, tag: u32, bytes: u64, value: Option<Py<PyAny>>) -> Call {
        let mpi = self.mpi.clone();
        self.plain_call("send", async move { mpi.send(to, tag, data(bytes, value)).await })
    }

    /// Sends a message, and waits until its receive has begun: MPI_Ssend.
    #[pyo3(signature = (to, tag, bytes, value=None))]
    fn synchronous_send(&self, to: u32, tag: u32, bytes: u64, value: Option<Py<PyAny>>) -> Call {
        let mpi = self.mpi.clone();
        let send = async move { mpi.synchronous_send(to, tag, data(bytes, value)).await };
        self.plain_call("synchronous_send", send)
    }

    /// Begins to send a message, and returns its request: MPI_Isend.
    #[pyo3(signature = (to, tag, bytes, value=None))]
    fn isend(&self, to: u32, tag: u32, bytes: u64, value: Option<Py<PyAny>>) -> Call {
        let mpi = self.mpi.clone();
        self.call("isend", async move { Request::from(mpi.isend(to, tag, data(bytes, value)).await) })
    }

    /// Receives a message of at most `bytes`; a source or a tag None is any: MPI_Recv.
    fn receive(&self, source: Option<u32>, tag: Option<u32>, bytes: u64) -> Call {
        let mpi = self.mpi.clone();
        self.call("receive", async move { Message(mpi.receive(source, tag, bytes).await) })
    }

    /// Begins to receive a message of at most `bytes`, and returns its request: MPI_Irecv.
    fn ireceive(&self, source: Option<u32>, tag: Option<u32>, bytes: u64) -> Call {
        let mpi = self.mpi.clone();
        self.call("ireceive", async move { Request::from(mpi.ireceive(source, tag, bytes).await) })
    }

    /// Waits for a request; returns the message of a receive, None of a send.
    fn wait(&self, request: &Request) -> PyResult<Call> {
        let (mpi, request) = (self.mpi.clone(), request.take()?);
        Ok(self.call("wait", async move { mpi.wait(request).await.map(Message) }))
    }

    /// Waits for requests; returns a list as `wait` does, in their order.
    fn wait_all(&self, requests: Vec<Py<Request>>) -> PyResult<Call> {
        let mpi = self.mpi.clone();
        let taken: Vec<_> = requests.iter().map(|request| request.get().take()).collect::<PyResult<_>>()?;
        Ok(self.call("wait_all", async move {
            mpi.wait_all(taken).await.into_iter().map(|message| message.map(Message)).collect::<Vec<_>>()
        }))
    }

    /// Waits for the request that is complete first, removes it from the list, and returns its index and the message: MPI_Waitany.
    fn wait_any(&self, requests: Bound<'_, PyList>) -> PyResult<Call> {
        let handles: Vec<Py<Request>> = requests.extract()?;
        if handles.is_empty() {
            return Err(PyValueError::new_err("wait_any: there are no requests"));
        }
        let mut taken: Vec<_> =
            handles.iter().map(|request| request.get().take()).collect::<PyResult<_>>()?;
        let (mpi, requests) = (self.mpi.clone(), requests.unbind());
        Ok(self.call("wait_any", async move {
            let (index, message) = mpi.wait_any(&mut taken).await;
            let others = (0..).zip(&handles).filter(|(other, _)| *other != index);
            others.zip(taken).for_each(|((_, handle), request)| handle.get().put_back(request));
            Python::attach(|py| {
                // The rank has waited since: the list is as it was.
                requests.bind(py).del_item(index).expect("the request is in the list");
            });
            (index, message.map(Message))
        }))
    }

    /// Tests a request: MPI_Test. Returns whether it is complete, and the message of a receive.
    fn test(&self, request: Py<Request>) -> PyResult<Call> {
        let (mpi, taken) = (self.mpi.clone(), request.get().take()?);
        Ok(self.call("test", async move {
            match mpi.test(taken).await {
                Ok(message) => (true, message.map(Message)),
                Err(taken) => {
                    request.get().put_back(taken);
                    (false, None)
                }
            }
        }))
    }

    /// Waits until there is a message to receive, and returns it without its value: MPI_Probe.
    #[pyo3(signature = (source=None, tag=None))]
    fn probe(&self, source: Option<u32>, tag: Option<u32>) -> Call {
        let mpi = self.mpi.clone();
        self.call("probe", async move { Message(mpi.probe(source, tag).await) })
    }

    /// Returns the first message to receive without its value, or None: MPI_Iprobe.
    #[pyo3(signature = (source=None, tag=None))]
    fn try_probe(&self, source: Option<u32>, tag: Option<u32>) -> Call {
        let mpi = self.mpi.clone();
        self.call("try_probe", async move { mpi.try_probe(source, tag).await.map(Message) })
    }

    /// Waits for all ranks of the communicator: MPI_Barrier.
    fn barrier(&self) -> Call {
        let mpi = self.mpi.clone();
        self.plain_call("barrier", async move { mpi.barrier().await })
    }

    /// Returns the value of the root to all ranks: MPI_Bcast. The others give the size of the root's.
    #[pyo3(signature = (root, bytes, value=None))]
    fn broadcast(&self, root: u32, bytes: u64, value: Option<Py<PyAny>>) -> Call {
        let mpi = self.mpi.clone();
        self.call("broadcast", async move {
            let data = mpi.broadcast(root, data(bytes, value)).await;
            Python::attach(|py| self::value(py, &data))
        })
    }

    /// Reduces on all ranks, which takes each `flops`: MPI_Allreduce. Returns the list of all values: what they are reduced to is the program's.
    #[pyo3(signature = (bytes, value=None, flops=0.0))]
    fn all_reduce(&self, bytes: u64, value: Option<Py<PyAny>>, flops: f64) -> Call {
        let mpi = self.mpi.clone();
        self.call("all_reduce", async move { values(&mpi.all_reduce(data(bytes, value), flops).await) })
    }

    /// Gathers the values of all ranks, of equal sizes, on all of them, as a list: MPI_Allgather.
    #[pyo3(signature = (bytes, value=None))]
    fn all_gather(&self, bytes: u64, value: Option<Py<PyAny>>) -> Call {
        let mpi = self.mpi.clone();
        self.call("all_gather", async move { values(&mpi.all_gather(data(bytes, value)).await) })
    }

    /// Divides the communicator into one for each color, in which ranks have the order of their keys: MPI_Comm_split. Returns the rank in
    /// the new one, or None without a color.
    #[pyo3(signature = (color, key=0))]
    fn split(&self, color: Option<u32>, key: i64) -> Call {
        let (mpi, forgotten) = (self.mpi.clone(), Arc::clone(&self.forgotten));
        self.call("split", async move { mpi.split(color, key).await.map(|mpi| Self { mpi, forgotten }) })
    }
}
